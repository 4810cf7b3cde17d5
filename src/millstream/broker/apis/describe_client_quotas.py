"""DescribeClientQuotas: the quotas of the entities that a filter matches (KIP-546).

Departures from Apache Kafka: none known.

A component matches by name, the default of its type, or any entity that has its type; a strict filter matches only
entities that have no other type. An address is never combined with a user or a client id. v1: flexible.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.quotas import CLIENT_ID, IP, USER
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

EXACT, DEFAULT, ANY = 0, 1, 2


@api(DescribeClientQuotasRequest, versions=(0, 1))
def describe_client_quotas(
    broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    try:
        _check(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message)
    entries = []
    for entity, quotas in broker.quotas:
        names = dict(entity)
        if request.strict and len(names) != len(request.components):
            continue
        if all(_matches(component, names) for component in request.components):
            entries.append(
                EntryData(
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    values=[ValueData(key=key, value=value) for key, value in sorted(quotas.items())],
                )
            )
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _check(components: list[ComponentData]) -> None:
    types = Counter(component.entity_type for component in components)
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The type of an entity must not be empty")
        if types[kind] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The filter has {kind} more than once")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"There is no type of entity {kind}")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no type of match {component.match_type}")
        if (component.match is None) == (component.match_type == EXACT):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A name must be given for an exact match, and only for one")
    if IP in types and len(types) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "An ip cannot be combined with a user or a client-id")


def _matches(component: ComponentData, names: dict[str, str | None]) -> bool:
    if component.entity_type not in names:
        return False
    return component.match_type == ANY or names[component.entity_type] == component.match

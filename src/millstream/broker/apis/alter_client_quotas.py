"""AlterClientQuotas: sets and removes quotas of users, client ids, both, and addresses (KIP-546, KIP-612).

Departures from Apache Kafka: an address must be written as one; host names are not looked up.

Each entity changes as a whole or not at all. v1: flexible.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from millstream.broker.store import Entity
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

LARGEST = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    CONNECTION_CREATION_RATE: 2**31 - 1,
}
"""Quotas that are whole numbers, and the largest of each."""
USER_QUOTAS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
IP_QUOTAS = (CONNECTION_CREATION_RATE,)


@api(AlterClientQuotasRequest, versions=(0, 1))
def alter_client_quotas(
    broker: Broker, request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    changes: dict[Entity, dict[str, float]] = {}
    responses: list[tuple[Entity | None, ResponseEntryData]] = []
    for entry in request.entries:
        response = ResponseEntryData(
            error_message=None,
            entity=[ResponseEntityData(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity],
        )
        entity = None
        try:
            entity = _entity(entry)
            if entity in changes:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The entity is named more than once")
            changes[entity] = _changed(broker, entity, entry)
        except KafkaError as error:
            response.error_code, response.error_message = error.code, error.message
            entity = None
        responses.append((entity, response))
    if changes and not request.validate_only:
        try:
            broker.quotas.replace(changes)
        except KafkaError as error:
            for entity, response in responses:
                if entity is not None:
                    response.error_code, response.error_message = error.code, error.message
    return AlterClientQuotasResponse(entries=[response for _, response in responses])


def _entity(entry: RequestEntryData) -> Entity:
    """The entity in the order of its types."""
    names: dict[str, str | None] = {}
    for part in entry.entity:
        if part.entity_type not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no type of entity {part.entity_type}")
        if part.entity_type in names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The entity has {part.entity_type} more than once")
        if part.entity_name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The name of the {part.entity_type} must not be empty")
        names[part.entity_type] = part.entity_name
    if not names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "An entity must have a user, a client-id or an ip")
    if IP in names:
        if len(names) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "An ip cannot be combined with a user or a client-id")
        _check_ip(names[IP])
    return tuple(sorted(names.items()))


def _check_ip(ip: str | None) -> None:
    try:
        ip_address(ip or "0.0.0.0")
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{ip} is not an address") from None


def _changed(broker: Broker, entity: Entity, entry: RequestEntryData) -> dict[str, float]:
    """The quotas of the entity after the operations of the entry."""
    quotas = dict(broker.quotas.of(entity))
    times = Counter(op.key for op in entry.ops)
    known = IP_QUOTAS if entity[0][0] == IP else USER_QUOTAS
    for op in entry.ops:
        if times[op.key] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The quota {op.key} is named more than once")
        if op.remove:
            quotas.pop(op.key, None)
            continue
        if op.key not in known:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no quota {op.key} for this entity")
        if not op.value > 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The quota {op.key} must be greater than 0")
        if op.key in LARGEST and (op.value > LARGEST[op.key] or op.value % 1 > 1e-6):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"The quota {op.key} must be whole and at most {LARGEST[op.key]}"
            )
        quotas[op.key] = op.value
    return quotas

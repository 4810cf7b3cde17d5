"""DescribeConfigs: the configs of topics, brokers, loggers, groups and client metrics, and the values' sources.

Departures from Apache Kafka: configs are listed by name, and the documentation is this server's own, shorter one.

- v1: sources and synonyms (KIP-226). v2: as v1. v3: types and documentation (KIP-569). v4: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import loggers
from millstream.broker.apis.registry import api
from millstream.broker.configs.altering import check_node
from millstream.broker.configs.dynamic import ALL_BROKERS, ResourceType
from millstream.broker.configs.effective import ConfigEntry, Source
from millstream.broker.topics import validate_name
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DescribeConfigsRequest, versions=(1, 4))
def describe_configs(
    broker: Broker, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            result.configs = _describe(broker, resource, request.include_synonyms, request.include_documentation)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message or None
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _describe(
    broker: Broker, resource: DescribeConfigsResource, synonyms: bool, documentation: bool
) -> list[DescribeConfigsResourceResult]:
    name, keys = resource.resource_name, resource.configuration_keys
    try:
        kind = ResourceType(resource.resource_type)
    except ValueError:
        kind = ResourceType.UNKNOWN
    if kind is ResourceType.TOPIC:
        validate_name(name)
        if name not in broker.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif kind in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource must have a name")
    elif kind is ResourceType.BROKER_LOGGER:
        check_node(broker, name)
        return [_logger(logger, level) for logger, level in loggers.levels().items() if not keys or logger in keys]
    elif kind is ResourceType.UNKNOWN:
        message = f"Configs of resource type {resource.resource_type} cannot be described"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    elif name != ALL_BROKERS:
        check_node(broker, name)
    return [_result(entry, synonyms, documentation) for entry in broker.configs.describe(kind, name, keys)]


def _result(entry: ConfigEntry, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=said.name, value=said.value, source=said.source)
            for said in (entry.synonyms if synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.doc if documentation else None,
    )


def _logger(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=name, value=level, config_source=Source.DYNAMIC_BROKER_LOGGER)

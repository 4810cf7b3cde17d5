"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single configs (KIP-339), and sets log levels.

Departures from Apache Kafka: an operation that does not exist is INVALID_REQUEST, not UNKNOWN_SERVER_ERROR.

- v0: as said. v1: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import loggers
from millstream.broker.apis.registry import api
from millstream.broker.configs import altering
from millstream.broker.configs.altering import Operation
from millstream.broker.configs.dynamic import ResourceType
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(IncrementalAlterConfigsRequest, versions=(0, 1))
def incremental_alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        _alter(broker, resource, request.validate_only)

    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=(error.message or None) if error else None,
            )
            for resource, error in altering.outcomes(request.resources, alter)
        ]
    )


def _alter(broker: Broker, resource: AlterConfigsResource, validate_only: bool) -> None:
    altering.check_names(
        [config.name for config in resource.configs],
        [c.name for c in resource.configs if c.value is None and c.config_operation != Operation.DELETE],
    )
    kind = altering.resource_type(resource.resource_type, loggers=True)
    if kind is ResourceType.BROKER_LOGGER:
        _alter_loggers(broker, resource, validate_only)
        return
    new = dict(broker.configs.overrides(kind, resource.resource_name))
    for config in resource.configs:
        altering.apply_operation(kind, new, config.name, config.config_operation, config.value)
    altering.alter(broker, kind, resource.resource_name, new, validate_only=validate_only)


def _alter_loggers(broker: Broker, resource: AlterConfigsResource, validate_only: bool) -> None:
    altering.check_node(broker, resource.resource_name)
    for config in resource.configs:
        if config.config_operation not in (Operation.SET, Operation.DELETE):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A log level can be set or deleted, nothing else")
        loggers.check(config.name, config.value, unset=config.config_operation == Operation.DELETE)
    if validate_only:
        return
    for config in resource.configs:
        if config.config_operation == Operation.DELETE:
            loggers.unset_level(config.name)
        else:
            loggers.set_level(config.name, config.value or "")

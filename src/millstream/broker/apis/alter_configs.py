"""AlterConfigs: makes the given configs all that a resource has set; what is not given goes back to its default.

Departures from Apache Kafka: none known. Deprecated there in favour of IncrementalAlterConfigs; loggers cannot be
altered with it.

- v0-1: as said. v2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.configs import altering
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(AlterConfigsRequest, versions=(0, 2))
def alter_configs(broker: Broker, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    def alter(resource: AlterConfigsResource) -> None:
        _alter(broker, resource, request.validate_only)

    return AlterConfigsResponse(
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
        [config.name for config in resource.configs if config.value is None],
    )
    kind = altering.resource_type(resource.resource_type, loggers=False)
    new = {config.name: config.value or "" for config in resource.configs}
    altering.alter(broker, kind, resource.resource_name, new, validate_only=validate_only)

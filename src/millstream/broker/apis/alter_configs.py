"""AlterConfigs: makes the given configs all that a resource has set; what is not given goes back to its default.

Departures from Apache Kafka: none known. Deprecated there in favour of IncrementalAlterConfigs; loggers cannot be
altered with it.

- v0-1: as said. v2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.configs import altering
from millstream.wire.errors import ErrorCode, KafkaError
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
    twice = altering.duplicates((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            if (resource.resource_type, resource.resource_name) in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The resource is named more than once")
            _alter(broker, resource, request.validate_only)
        except KafkaError as error:
            response.error_code, response.error_message = error.code, error.message or None
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


def _alter(broker: Broker, resource: AlterConfigsResource, validate_only: bool) -> None:
    altering.check_names(
        [config.name for config in resource.configs],
        [config.name for config in resource.configs if config.value is None],
    )
    kind = altering.resource_type(resource.resource_type, loggers=False)
    new = {config.name: config.value or "" for config in resource.configs}
    altering.alter(broker, kind, resource.resource_name, new, validate_only=validate_only)

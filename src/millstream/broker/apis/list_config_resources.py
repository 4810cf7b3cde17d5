"""ListConfigResources: what there are configs of: topics, brokers, their loggers, groups, client metrics.

Departures from Apache Kafka: none known. Groups are listed if they have configs of their own.

- v0: ListClientMetricsResources, client metrics only (KIP-1000). v1: all kinds, or those asked for (KIP-1142).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.configs.dynamic import ResourceType
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

V0_TYPES = (ResourceType.CLIENT_METRICS,)
V1_TYPES = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


@api(ListConfigResourcesRequest, versions=(0, 1))
def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    supported = V1_TYPES if context.api_version >= 1 else V0_TYPES
    wanted = set(request.resource_types) or set(supported)
    if not wanted <= set(supported):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in supported
            if kind in wanted
            for name in _names(broker, kind)
        ]
    )


def _names(broker: Broker, kind: ResourceType) -> list[str]:
    if kind is ResourceType.TOPIC:
        return list(broker.topics.topic_names())
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.node_id)]
    return broker.configs.resources(kind)

"""DescribeCluster: the cluster's id, its broker and its controller (KIP-700).

Departures from Apache Kafka: none known.

- v0: as said. v1: the type of endpoint; there is none of the controller's (KIP-919). v2: fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import authorized_operations
from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

BROKERS, CONTROLLERS = 1, 2


@api(DescribeClusterRequest, versions=(0, 2))
def describe_cluster(
    broker: Broker, request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        message = "This is an endpoint of brokers, not of controllers"
        return DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=message)
    if request.endpoint_type != BROKERS:
        message = f"There is no endpoint type {request.endpoint_type}"
        return DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=message)
    host, port = broker.endpoint(context)
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port, rack=broker.rack)],
        cluster_authorized_operations=authorized_operations.CLUSTER if asked else authorized_operations.OMITTED,
    )

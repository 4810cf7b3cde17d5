"""DescribeQuorum: the controllers (KIP-595). Here: one voter, this node, which leads and is always caught up.

Departure from Apache Kafka: there is no metadata log; its offsets are the epoch of the finalized features, and the
controller's address is the broker's.

- v0: voters and observers. v1: times of their last fetch (KIP-836). v2: directory ids, nodes and messages (KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

METADATA_TOPIC = "__cluster_metadata"
LEADER_EPOCH = 1


@api(DescribeQuorumRequest, versions=(0, 2))
def describe_quorum(broker: Broker, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    asked = [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions]) for topic in request.topics
    ]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData(
                    topic_name=name,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            error_message="Only the metadata topic has a quorum",
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in asked
            ]
        )
    now = broker.timer.now_ms()
    offset = broker.features.epoch
    voter = ReplicaState(
        replica_id=broker.node_id,
        log_end_offset=offset,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    partition = ResponsePartitionData(
        leader_id=broker.node_id, leader_epoch=LEADER_EPOCH, high_watermark=offset, current_voters=[voter]
    )
    host, port = broker.endpoint(context)
    name = broker.configs.list("controller.listener.names")[0]
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[Node(node_id=broker.node_id, listeners=[Listener(name=name, host=host, port=port)])],
    )

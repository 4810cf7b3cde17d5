"""AlterPartitionReassignments: moves partitions to other brokers (KIP-455), of which there are none.

Departures from Apache Kafka: none known for a cluster of one broker. An assignment to this broker changes nothing and
succeeds, any other is INVALID_REPLICA_ASSIGNMENT; there is never one to cancel (NO_REASSIGNMENT_IN_PROGRESS).

- v0: as said. v1: a changed replication factor can be forbidden (KIP-860).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import placement
from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(AlterPartitionReassignmentsRequest, versions=(0, 1))
def alter_partition_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_reassign(broker, topic.name, p.partition_index, p.replicas) for p in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _reassign(broker: Broker, topic: str, index: int, replicas: list[int] | None) -> ReassignablePartitionResponse:
    try:
        if broker.topics.partition(topic, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}")
        if replicas is None:
            message = f"The partition {topic}-{index} is not being reassigned"
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
        placement.check_assignment(broker.node_id, replicas)
    except KafkaError as error:
        return ReassignablePartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.message or None
        )
    return ReassignablePartitionResponse(partition_index=index, error_message=None)

"""OffsetForLeaderEpoch: where a leader epoch ended, by which a consumer finds out that its position was truncated away.

Departures from Apache Kafka: none known. v3: replica id (KIP-392). v4: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(OffsetForLeaderEpochRequest, versions=(2, 4))
def offset_for_leader_epoch(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_end_offset(broker, topic.topic, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _end_offset(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.topics.partition(topic, wanted.partition)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=leader_epoch, end_offset=end_offset)

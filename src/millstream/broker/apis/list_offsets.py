"""ListOffsets: the offset at a time, or at one of the named places of a log.

Departure from Apache Kafka: there is no tiered storage, so -5 (latest tiered) finds nothing and -6 (earliest pending
upload) likewise, as on a Kafka topic without remote storage.

- v1: one offset for each partition. v2: isolation level. v4: leader epochs. v7: -3, the record with the largest
  timestamp (KIP-734). v8: -4, the first local offset (KIP-405). v9: -5 (KIP-1005). v10: time-out. v11: -6 (KIP-1023).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.log.fetch import Isolation
from millstream.log.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    fetch_offset,
)
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

NO_VERSION = 1 << 15
FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@api(ListOffsetsRequest, versions=(1, 11))
def list_offsets(broker: Broker, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    isolation = Isolation(request.isolation_level)
    counts = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)

    def answer(topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        try:
            if counts[topic, wanted.partition_index] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition is named twice")
            if wanted.timestamp < 0 and context.api_version < FIRST_VERSION.get(wanted.timestamp, NO_VERSION):
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
            return _offset(broker, topic, wanted, isolation)
        except KafkaError as error:
            return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=error.code)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[answer(topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _offset(
    broker: Broker, topic: str, wanted: ListOffsetsPartition, isolation: Isolation
) -> ListOffsetsPartitionResponse:
    partition = broker.topics.partition(topic, wanted.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition.check_leader_epoch(wanted.current_leader_epoch)
    timestamp, offset, leader_epoch = fetch_offset(partition.log, wanted.timestamp, isolation)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )

"""DeleteRecords: moves a partition's log start offset forward (KIP-107).

Departures from Apache Kafka: none known. -1 means the high watermark; an offset beyond it, or a negative one, is
OFFSET_OUT_OF_RANGE; internal topics are refused; a topic that is only compacted has no records to delete
(POLICY_VIOLATION). v2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.topics import is_internal
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

HIGH_WATERMARK = -1


@api(DeleteRecordsRequest, versions=(0, 2))
def delete_records(broker: Broker, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(broker, topic.name, wanted.partition_index, wanted.offset) for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        partition = broker.topics.partition(topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        log = partition.log
        if "delete" not in log.config.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        low = log.delete_records(log.high_watermark if offset == HIGH_WATERMARK else offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=error.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low)

"""OffsetDelete: committed offsets of single partitions are deleted, unless the group is subscribed to their topic.

Departures from Apache Kafka: none known.

- v0 (KIP-496).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(OffsetDeleteRequest, versions=(0, 0))
def offset_delete(broker: Broker, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    accepted: list[OffsetDeleteRequestTopic] = []
    refused: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for topic in request.topics:
        count = broker.topics.partition_count(topic.name) or 0
        for partition in topic.partitions:
            if not 0 <= partition.partition_index < count:
                refused.setdefault(topic.name, []).append(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                )
        existing = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if existing:
            accepted.append(OffsetDeleteRequestTopic(name=topic.name, partitions=existing))
    response = broker.groups.offset_delete(OffsetDeleteRequest(group_id=request.group_id, topics=accepted))
    if response.error_code != ErrorCode.NONE:
        return response
    for answer in response.topics:
        answer.partitions += refused.pop(answer.name, [])
    response.topics += [OffsetDeleteResponseTopic(name=name, partitions=each) for name, each in refused.items()]
    return response

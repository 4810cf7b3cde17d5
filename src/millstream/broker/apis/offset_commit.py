"""OffsetCommit: offsets of a group are written to `__consumer_offsets`, and are on record when the answer comes.

Members say who they are and in which generation (or member epoch); a client outside of the group's management says
neither and may commit while the group has no members.

Departures from Apache Kafka: none known.

- v2-4: retention time, which is then the offset's expiry. v3: throttle time. v6: leader epoch. v7: static members
  (KIP-345). v8: flexible. v9: consumer groups, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-848). v10: topic ids
  (KIP-848), UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_TOPIC_IDS = 10


@api(OffsetCommitRequest, versions=(2, 10))
def offset_commit(broker: Broker, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    refused: list[OffsetCommitResponseTopic] = []
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            topic.name = broker.topics.topic_name(topic.topic_id) or ""
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic.topic_id = broker.topics.topic_id(topic.name) or ZERO_UUID
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        count = broker.topics.partition_count(topic.name) if topic.name else None
        if count is None or topic.topic_id == ZERO_UUID:
            refused.append(_refused(topic, (partition.partition_index for partition in topic.partitions), error))
            continue
        missing = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
        if missing:
            refused.append(_refused(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if topic.partitions:
            accepted.append(topic)
    if not accepted:
        return OffsetCommitResponse(topics=refused)
    request.topics = accepted
    try:
        response = broker.groups.offset_commit(request, context)
    except KafkaError as error:
        response = OffsetCommitResponse(
            topics=[_refused(t, (p.partition_index for p in t.partitions), error.code) for t in accepted]
        )
    by_topic = {(topic.topic_id, topic.name): topic for topic in response.topics}
    for refusal in refused:
        answered = by_topic.get((refusal.topic_id, refusal.name))
        if answered is None:
            response.topics.append(refusal)
        else:
            answered.partitions += refusal.partitions
    return response


def _refused(topic: OffsetCommitRequestTopic, partitions: Iterable[int], error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[OffsetCommitResponsePartition(partition_index=index, error_code=error) for index in partitions],
    )

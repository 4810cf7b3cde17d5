"""OffsetFetch: the committed offsets of one or several groups; -1 where there is none.

With `require_stable` a partition for which a transaction is still open is UNSTABLE_OFFSET_COMMIT: ask again.

Departures from Apache Kafka: none known.

- v2: all offsets of a group (topics null), error of the whole response. v3: throttle time. v5: leader epoch. v6:
  flexible. v7: require stable (KIP-447). v8: several groups (KIP-709). v9: member id and epoch are checked (KIP-848).
  v10: topic ids, UNKNOWN_TOPIC_ID (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10


@api(OffsetFetchRequest, versions=(1, 10))
def offset_fetch(broker: Broker, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    version = context.api_version
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[_fetch(broker, group, version, request.require_stable) for group in request.groups]
        )
    wanted = None
    if request.topics is not None:
        wanted = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    single = OffsetFetchRequestGroup(group_id=request.group_id)
    single.topics = wanted
    return _as_single(_fetch(broker, single, version, request.require_stable))


def _fetch(
    broker: Broker, group: OffsetFetchRequestGroup, version: int, require_stable: bool
) -> OffsetFetchResponseGroup:
    refused: list[OffsetFetchResponseTopics] = []
    wants_all = group.topics is None
    if version >= FIRST_VERSION_WITH_TOPIC_IDS and group.topics is not None:
        for topic in group.topics:
            topic.name = broker.topics.topic_name(topic.topic_id) or ""
        refused = [_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in group.topics if not topic.name]
        group.topics = [topic for topic in group.topics if topic.name]
    try:
        response = broker.groups.offset_fetch(group, require_stable=require_stable)
    except KafkaError as error:
        if version >= FIRST_VERSION_WITH_GROUP_ERROR:
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
        return OffsetFetchResponseGroup(
            group_id=group.group_id, topics=[_refused(topic, error.code) for topic in group.topics or ()]
        )
    if version >= FIRST_VERSION_WITH_TOPIC_IDS and wants_all:
        for answer in response.topics:
            answer.topic_id = broker.topics.topic_id(answer.name) or ZERO_UUID
        # A topic that is gone has no id to be named by.
        response.topics = [answer for answer in response.topics if answer.topic_id != ZERO_UUID]
    response.topics += refused
    return response


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=error
            )
            for index in topic.partition_indexes
        ],
    )


def _as_single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The answer of the versions that know one group only."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )

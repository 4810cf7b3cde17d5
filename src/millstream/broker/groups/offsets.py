"""Offsets of all groups: commit, transactional commit, fetch, delete, expiry. The state itself is in `offset_store`.

Every change is a record first: it is appended, then applied to the store by the same code that replay uses. Where the
log refuses, nothing has changed and the KafkaError goes to the client.

Expiry, as Kafka does it (offsets.retention.minutes, checked every offsets.retention.check.interval.ms):

    group                                    an offset expires, unless a transaction is pending for it,
    empty, was used by members               when the group has been empty for that long
    empty, only ever committed to            when it was committed that long ago
    with members (consumers)                 when committed that long ago and its topic is no longer subscribed to
    committed with a retention time (v2-4)   at the time that commit named, and none of the above

A group without members and offsets goes away itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from millstream.broker.coordinator_log import KeyValue, Producer
from millstream.broker.groups import records
from millstream.broker.groups.group import Group, PartitionValidator
from millstream.broker.groups.offset_store import CommittedOffset, OffsetStore, tombstones
from millstream.broker.groups.runtime import GroupRuntime
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.group_records import OffsetCommitKey, OffsetCommitValue
from millstream.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from millstream.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from millstream.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from millstream.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

NO_RETENTION_TIME = -1
INVALID_OFFSET = -1

Change = tuple[OffsetCommitKey, OffsetCommitValue]


class Offsets:
    """The requests about offsets, and the passing of time."""

    def __init__(self, runtime: GroupRuntime, new_simple_group: Callable[[str], Group]) -> None:
        self._runtime = runtime
        self._new_simple_group = new_simple_group
        self.store = OffsetStore()

    # --- commit ----------------------------------------------------------------------------------------------------

    def commit(
        self, request: OffsetCommitRequest, validate_partition: PartitionValidator | None
    ) -> OffsetCommitResponse:
        """The topics of the request exist and have both name and id; the group has been asked already."""
        now_ms = self._runtime.timer.now_ms()
        expire_ms = -1 if request.retention_time_ms == NO_RETENTION_TIME else now_ms + request.retention_time_ms
        changes: list[Change] = []
        response = OffsetCommitResponse()
        for topic in request.topics:
            answers: list[OffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                error = self._refusal(partition.committed_metadata)
                if error is ErrorCode.NONE:
                    if validate_partition is not None:
                        validate_partition(topic.name, topic.topic_id, partition.partition_index)
                    value = OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata or "",
                        commit_timestamp=now_ms,
                        expire_timestamp=expire_ms,
                        topic_id=topic.topic_id,
                    )
                    changes.append((_key(request.group_id, topic.name, partition.partition_index), value))
                answers.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                )
            response.topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers)
            )
        self._write(request.group_id, changes, None)
        return response

    def commit_transactional(
        self, request: TxnOffsetCommitRequest, validate_partition: PartitionValidator | None
    ) -> TxnOffsetCommitResponse:
        """As `commit`, but what is written stays pending until the marker of the producer's transaction."""
        now_ms = self._runtime.timer.now_ms()
        changes: list[Change] = []
        response = TxnOffsetCommitResponse()
        for topic in request.topics:
            answers: list[TxnOffsetCommitResponsePartition] = []
            topic_id = self._runtime.topics.topic_id(topic.name) or ZERO_UUID
            if topic_id == ZERO_UUID and validate_partition is not None:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            for partition in topic.partitions:
                error = self._refusal(partition.committed_metadata)
                if error is ErrorCode.NONE:
                    if validate_partition is not None:
                        validate_partition(topic.name, topic_id, partition.partition_index)
                    value = OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata or "",
                        commit_timestamp=now_ms,
                    )
                    changes.append((_key(request.group_id, topic.name, partition.partition_index), value))
                answers.append(
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                )
            response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
        self._write(request.group_id, changes, Producer(request.producer_id, request.producer_epoch))
        return response

    def _refusal(self, metadata: str | None) -> ErrorCode:
        # Kafka measures Java characters, that is UTF-16 code units.
        too_large = metadata and len(metadata.encode("utf-16-le")) // 2 > self._runtime.config.offset_metadata_max_bytes
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE

    # --- fetch -----------------------------------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """One group's offsets, all of them if the request names no topics. KafkaError if the group refuses."""
        group = self._runtime.groups.get(request.group_id)
        if group is not None:
            try:
                group.validate_offset_fetch(request.member_id, request.member_epoch)
            except KafkaError as error:
                if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                group = None
        wanted = request.topics
        if wanted is None:
            wanted = []
            if group is not None:
                wanted = [
                    OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))
                    for topic, partitions in self.store.of_group(request.group_id).items()
                ]
        return OffsetFetchResponseGroup(
            group_id=request.group_id,
            topics=[
                OffsetFetchResponseTopics(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        self._fetched(request.group_id, topic, partition, group is not None, require_stable)
                        for partition in topic.partition_indexes
                    ],
                )
                for topic in wanted
            ],
        )

    def _fetched(
        self, group_id: str, topic: OffsetFetchRequestTopics, partition: int, group_exists: bool, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        answer = OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=INVALID_OFFSET, committed_leader_epoch=-1, metadata=""
        )
        if require_stable and self.store.has_pending(group_id, topic.name, partition):
            answer.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            return answer
        committed = self.store.get(group_id, topic.name, partition) if group_exists else None
        if committed is not None and not _is_of_another_topic(committed.topic_id, topic.topic_id):
            answer.committed_offset = committed.offset
            answer.committed_leader_epoch = committed.leader_epoch
            answer.metadata = committed.metadata
        return answer

    # --- deletion and expiry ---------------------------------------------------------------------------------------

    def delete(self, group: Group, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        places: list[tuple[str, int]] = []
        response = OffsetDeleteResponse()
        known = set(self.store.known(group.group_id))
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            indexes = [partition.partition_index for partition in topic.partitions]
            if not subscribed:
                places += [(topic.name, index) for index in indexes if (topic.name, index) in known]
            response.topics.append(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[OffsetDeleteResponsePartition(partition_index=i, error_code=error) for i in indexes],
                )
            )
        self.remove(group.group_id, places)
        return response

    def remove(self, group_id: str, places: list[tuple[str, int]], also: Iterable[KeyValue] = ()) -> None:
        """Deletes offsets, and writes further tombstones (those of the group itself) behind them."""
        log_partition = self._runtime.log.partition_for(group_id)
        unwritten = iter(places)
        for batch in self._runtime.batches([*tombstones(group_id, places), *also]):
            self._runtime.append(group_id, batch)
            for topic, partition in islice(unwritten, len(batch)):
                self.store.apply(log_partition, -1, _key(group_id, topic, partition), None, None)

    def remove_topics(self, deleted: dict[str, bytes]) -> None:
        """Topics are gone: offsets committed for them (by that topic id, or by none) go too."""
        for group_id in self.store.groups():
            places = []
            for topic, partition in self.store.known(group_id):
                if topic in deleted:
                    committed = self.store.get(group_id, topic, partition)
                    if committed is None or not _is_of_another_topic(committed.topic_id, deleted[topic]):
                        places.append((topic, partition))
            self.remove(group_id, places)

    def expired(self, group: Group) -> tuple[list[tuple[str, int]], bool]:
        """Offsets of a group that have expired by now, and whether none are left then, not even pending ones."""
        now_ms = self._runtime.timer.now_ms()
        places: list[tuple[str, int]] = []
        all_expired = not self.store.has_any_pending(group.group_id)
        for topic, partitions in self.store.of_group(group.group_id).items():
            subscribed = group.is_subscribed_to(topic)
            for partition, committed in partitions.items():
                if (
                    not subscribed
                    and self._has_expired(group, committed, now_ms)
                    and not self.store.has_pending(group.group_id, topic, partition)
                ):
                    places.append((topic, partition))
                else:
                    all_expired = False
        return places, all_expired

    def _has_expired(self, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
        base_ms = group.expiration_base_ms(committed.commit_timestamp_ms)
        if base_ms is None:
            return False
        if committed.expire_timestamp_ms != -1:
            return now_ms >= committed.expire_timestamp_ms
        return now_ms - base_ms >= self._runtime.config.offsets_retention_ms

    # --- records ---------------------------------------------------------------------------------------------------

    def _write(self, group_id: str, changes: list[Change], producer: Producer | None) -> None:
        if not changes:
            return
        batch = [records.encode_record(key, value, records.offset_commit_version(value)) for key, value in changes]
        base_offset = self._runtime.append(group_id, batch, producer)
        log_partition = self._runtime.log.partition_for(group_id)
        producer_id = None if producer is None else producer.producer_id
        for index, (key, value) in enumerate(changes):
            self.replay(log_partition, base_offset + index, key, value, producer_id)

    def replay(
        self,
        log_partition: int,
        record_offset: int,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        producer_id: int | None,
    ) -> None:
        """Applies a record; an offset of a group nobody has heard of makes it a simple consumer's group."""
        if value is not None and key.group not in self._runtime.groups:
            self._new_simple_group(key.group)
        self.store.apply(log_partition, record_offset, key, value, producer_id)


def _key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)


def _is_of_another_topic(actual: bytes, expected: bytes) -> bool:
    """A topic deleted and created again has the old name and a new id; offsets without an id count for any."""
    return actual != ZERO_UUID and expected != ZERO_UUID and actual != expected

"""Committed offsets in memory, as the records of `__consumer_offsets` make them: one path for running and for replay.

An offset of a transaction is pending until the transaction's marker is met in the same partition of the topic; it
becomes visible with the commit and vanishes with the abort. A tombstone deletes both the committed offset and whatever
is pending for it. Of a regular and a transactional commit the one whose record lies later in the log wins, not the one
that became visible later: otherwise compaction could bring back an older offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups import records
from millstream.wire.messages.group_records import OffsetCommitKey, OffsetCommitValue


class CommittedOffset(NamedTuple):
    """One committed offset and where its record lies."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    """-1 unless the commit itself said how long to keep it (OffsetCommit up to v4)."""
    topic_id: bytes
    record_offset: int


_Place = tuple[str, str, int]
"""Group id, topic, partition."""
_NONE: Mapping[str, Mapping[int, CommittedOffset]] = {}


class OffsetStore:
    """The offsets of all groups."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[tuple[int, int], dict[_Place, CommittedOffset]] = {}
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    # --- questions -------------------------------------------------------------------------------------------------

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.get(group_id, _NONE).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """By topic and partition."""
        return self._committed.get(group_id, _NONE)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that is still open has an offset for this partition."""
        return (topic, partition) in self._open.get(group_id, ())

    def has_any_pending(self, group_id: str) -> bool:
        return group_id in self._open

    def groups(self) -> list[str]:
        """Every group with an offset, committed or pending."""
        return list(self._committed.keys() | self._open.keys())

    def count(self) -> int:
        return sum(len(partitions) for topics in self._committed.values() for partitions in topics.values())

    def known(self, group_id: str) -> list[tuple[str, int]]:
        """Every topic and partition for which the group has an offset, committed or pending."""
        places = {
            (topic, partition): None for topic, offsets in self.of_group(group_id).items() for partition in offsets
        }
        places.update(dict.fromkeys(self._open.get(group_id, ())))
        return list(places)

    # --- changes ---------------------------------------------------------------------------------------------------

    def apply(
        self,
        log_partition: int,
        record_offset: int,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        producer_id: int | None,
    ) -> None:
        """A record that is in the log now, written a moment ago or met in replay."""
        place = (key.group, key.topic, key.partition)
        if value is None:
            self._remove(place, log_partition)
            return
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )
        if producer_id is None:
            self._put(place, committed)
        else:
            self._pending.setdefault((log_partition, producer_id), {})[place] = committed
            self._open.setdefault(key.group, {}).setdefault((key.topic, key.partition), set()).add(producer_id)

    def end_transaction(self, log_partition: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer's transaction is in this partition of the log."""
        for place, offset in self._pending.pop((log_partition, producer_id), {}).items():
            self._close(place, producer_id)
            if committed:
                current = self.get(*place)
                if current is None or offset.record_offset > current.record_offset:
                    self._put(place, offset)

    def _put(self, place: _Place, offset: CommittedOffset) -> None:
        group_id, topic, partition = place
        self._committed.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset

    def _remove(self, place: _Place, log_partition: int) -> None:
        group_id, topic, partition = place
        topics = self._committed.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self._committed[group_id]
        for producer_id in list(self._open.get(group_id, {}).get((topic, partition), ())):
            offsets = self._pending.get((log_partition, producer_id), {})
            offsets.pop(place, None)
            if not offsets:
                self._pending.pop((log_partition, producer_id), None)
            self._close(place, producer_id)

    def _close(self, place: _Place, producer_id: int) -> None:
        group_id, topic, partition = place
        places = self._open.get(group_id, {})
        producers = places.get((topic, partition), set())
        producers.discard(producer_id)
        if not producers:
            places.pop((topic, partition), None)
        if not places:
            self._open.pop(group_id, None)


def tombstones(group_id: str, places: list[tuple[str, int]]) -> Iterator[KeyValue]:
    """The records that delete offsets of a group."""
    for topic, partition in places:
        yield records.tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition))

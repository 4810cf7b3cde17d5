"""A coordinator's internal topic in memory, with the two things a test needs: it can fail, and it can be replayed.

log = MemoryCoordinatorLog("__consumer_offsets")
log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space"))   # every append until fail_with(None)
restarted = GroupCoordinator(log, ...); restarted.load()               # what a restart would see
log.compacted()                                                        # the same topic as the cleaner leaves it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.broker.coordinator_log import (
    KeyValue,
    Producer,
    ReplayedMarker,
    ReplayedRecords,
    partition_for_key,
)
from support.manual_timer import ManualTimer


class MemoryCoordinatorLog:
    """Implements `CoordinatorLog`."""

    def __init__(
        self, topic: str = "__consumer_offsets", partitions: int = 3, timer: ManualTimer | None = None
    ) -> None:
        self._topic = topic
        self._timer = timer or ManualTimer()
        self._error: Exception | None = None
        self.entries: list[list[ReplayedRecords | ReplayedMarker]] = [[] for _ in range(partitions)]
        self._next_offsets = [0] * partitions

    @property
    def topic(self) -> str:
        return self._topic

    def partition_for(self, key: str) -> int:
        return partition_for_key(key, len(self.entries))

    def partition_count(self) -> int:
        return len(self.entries)

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None = None) -> int:
        if self._error is not None:
            raise self._error
        if not records:
            raise AssertionError("an empty batch was appended")
        base_offset = self._next_offsets[partition]
        self.entries[partition].append(ReplayedRecords(base_offset, tuple(records), self._timer.now_ms(), producer))
        self._next_offsets[partition] += len(records)
        return base_offset

    def append_marker(self, partition: int, producer: Producer, *, committed: bool) -> None:
        """The transaction coordinator's marker."""
        self.entries[partition].append(ReplayedMarker(producer, committed))
        self._next_offsets[partition] += 1

    def replay(self, partition: int) -> Iterator[ReplayedRecords | ReplayedMarker]:
        yield from list(self.entries[partition])

    def fail_with(self, error: Exception | None) -> None:
        self._error = error

    def records(self) -> list[KeyValue]:
        """Every record ever written, partition by partition."""
        return [
            record
            for partition in self.entries
            for entry in partition
            if isinstance(entry, ReplayedRecords)
            for record in entry.records
        ]

    def compacted(self) -> MemoryCoordinatorLog:
        """A copy as the cleaner leaves it: up to the first open transaction each key has its last record only.

        Records of aborted transactions are gone; markers and tombstones are kept, as they are for a while.
        """
        copy = MemoryCoordinatorLog(self._topic, len(self.entries), self._timer)
        copy._next_offsets = list(self._next_offsets)
        for number, partition in enumerate(self.entries):
            clean = _first_unstable(partition)
            aborted = _aborted(partition)
            last: dict[bytes, tuple[int, int]] = {}
            for index, entry in enumerate(partition[:clean]):
                if isinstance(entry, ReplayedRecords) and index not in aborted:
                    last.update((record.key, (index, at)) for at, record in enumerate(entry.records))
            for index, entry in enumerate(partition[:clean]):
                if isinstance(entry, ReplayedRecords):
                    kept = [record for at, record in enumerate(entry.records) if last.get(record.key) == (index, at)]
                    if kept:
                        copy.entries[number].append(entry._replace(records=tuple(kept)))
                else:
                    copy.entries[number].append(entry)
            copy.entries[number] += partition[clean:]
        return copy


Entries = list[ReplayedRecords | ReplayedMarker]


def _ends(partition: Entries, index: int) -> bool | None:
    """How the transaction of a batch ended: committed or not; None if it is open (or there is none)."""
    producer = partition[index].producer
    if producer is None:
        return None
    for entry in partition[index + 1 :]:
        if isinstance(entry, ReplayedMarker) and entry.producer.producer_id == producer.producer_id:
            return entry.committed
    return None


def _first_unstable(partition: Entries) -> int:
    """The index of the first batch of a transaction that is still open; all there is if none is."""
    for index, entry in enumerate(partition):
        if isinstance(entry, ReplayedRecords) and entry.producer is not None and _ends(partition, index) is None:
            return index
    return len(partition)


def _aborted(partition: Entries) -> set[int]:
    return {
        index
        for index, entry in enumerate(partition)
        if isinstance(entry, ReplayedRecords) and entry.producer is not None and _ends(partition, index) is False
    }

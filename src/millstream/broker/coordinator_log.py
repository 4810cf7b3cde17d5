"""The log of a coordinator: an internal, compacted topic whose partitions hold the coordinator's state as records.

A coordinator changes its state only after `append` returned: what is in memory is never ahead of what is on disk. At
start every partition is replayed through the same code path that applies a fresh record, so there is one mechanism for
running and for recovery. `__consumer_offsets` and `__transaction_state` are the two topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class Producer(NamedTuple):
    """The transactional producer on whose behalf records are written."""

    producer_id: int
    producer_epoch: int


class KeyValue(NamedTuple):
    """One record of a coordinator: bytes as they lie in the topic. A value of None is a tombstone."""

    key: bytes
    value: bytes | None


class ReplayedRecords(NamedTuple):
    """One data batch met in replay."""

    base_offset: int
    records: Sequence[KeyValue]
    timestamp_ms: int
    producer: Producer | None
    """Set when the batch is part of a transaction: it counts only once its marker is met."""


class ReplayedMarker(NamedTuple):
    """The end of a producer's transaction in this partition."""

    producer: Producer
    committed: bool


class CoordinatorLog(Protocol):
    """What a coordinator may do with its internal topic."""

    @property
    def topic(self) -> str: ...

    def partition_for(self, key: str) -> int:
        """The partition that owns a group id or transactional id: Java's string hash modulo the partition count."""

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None = None) -> int:
        """Writes the records as one batch and returns its base offset. KafkaError when the storage refuses."""

    def replay(self, partition: int) -> Iterator[ReplayedRecords | ReplayedMarker]:
        """All records of a partition from its log start, in order."""

    def partition_count(self) -> int:
        """How many partitions the topic has; it is created on first use."""


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`, signed 32 bit: what decides which coordinator partition owns a key."""
    value = 0
    raw = text.encode("utf-16-be")
    for index in range(0, len(raw), 2):
        value = (31 * value + (raw[index] << 8 | raw[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for_key(key: str, partition_count: int) -> int:
    return (java_string_hash(key) & 0x7FFFFFFF) % partition_count

"""What a dump consists of: the entries of each kind of file as plain values, and the problems that were found."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """Something that is wrong, and the byte of the file where (None: the file as a whole)."""

    position: int | None
    text: str


class BatchEntry(NamedTuple):
    """A batch as its header has it. `crc_ok` is None where there is nothing to check (formats before version 2)."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    timestamp_type: str
    compression: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    transactional: bool
    control: str | None
    delete_horizon_ms: int | None
    magic: int
    crc: int
    crc_ok: bool | None


class RecordEntry(NamedTuple):
    """A record, at the batch that begins at `batch`."""

    batch: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


class OffsetIndexEntry(NamedTuple):
    position: int
    offset: int
    segment_position: int


class TimeIndexEntry(NamedTuple):
    position: int
    timestamp: int
    offset: int


class AbortedEntry(NamedTuple):
    position: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerSnapshotEntry(NamedTuple):
    position: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    open_transaction_offset: int | None


class EpochEntry(NamedTuple):
    leader_epoch: int
    start_offset: int


class CheckpointEntry(NamedTuple):
    topic: str
    partition: int
    offset: int


class PropertyEntry(NamedTuple):
    name: str
    value: str


Item = (
    Problem
    | BatchEntry
    | RecordEntry
    | OffsetIndexEntry
    | TimeIndexEntry
    | AbortedEntry
    | ProducerSnapshotEntry
    | EpochEntry
    | CheckpointEntry
    | PropertyEntry
)

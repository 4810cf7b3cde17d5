"""A segment read for a person, batch by batch, with everything checked that a batch says about itself.

Checked: the length leads to the next batch; the CRC; offsets ascend from the segment's base offset on; the leader epoch
never descends; the count of records is the number of records there are, and they fill the batch; each record's offset
lies in its batch. A length that leads nowhere ends the reading, since nothing says where the next batch would begin.
Messages of the formats before version 2 are named with their offset and passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from millstream.log.dump_items import BatchEntry, Item, Problem, RecordEntry
from millstream.log.segment import may_be_room
from millstream.wire.batches import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    BatchHeader,
    Record,
    check_crc,
    parse_header,
    read_records,
)
from millstream.wire.errors import KafkaError

_CONTROL_KINDS: Final = {
    0: "abort",
    1: "commit",
    2: "leader change",
    3: "snapshot header",
    4: "snapshot footer",
    5: "kraft version",
    6: "kraft voters",
}
_OLD_MINIMUM: Final = 14
_ZERO_CHUNK: Final = 1 << 20


def dump_segment(path: Path, base_offset: int, *, records: bool, shallow: bool) -> Iterator[Item]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        order = _Order(base_offset)
        while position < size:
            head = _read(file, position, HEADER_SIZE)
            problem = _unreadable(file, head, position, size)
            if problem is not None:
                # A server that runs, or was killed, has kept the rest of the file for the next batches.
                if not (may_be_room(position, size) and _is_zero(file, position)):
                    yield problem
                return
            length = LOG_OVERHEAD + int.from_bytes(head[8:12], "big", signed=True)
            if head[MAGIC_OFFSET] == MAGIC:
                data = _read(file, position, length)
                header = parse_header(data)
                yield from _batch(data, header, position, records=records, shallow=shallow)
                yield from order.check(header, position)
            else:
                yield _old(head, position, length)
            position += length


def headers(path: Path) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch of version 2, up to the first place that cannot be read."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position < size:
            head = _read(file, position, HEADER_SIZE)
            if _unreadable(file, head, position, size) is not None:
                return
            if head[MAGIC_OFFSET] == MAGIC:
                yield position, parse_header(head)
            position += LOG_OVERHEAD + int.from_bytes(head[8:12], "big", signed=True)


def _read(file: BinaryIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)


def _unreadable(file: BinaryIO, head: bytes, position: int, size: int) -> Problem | None:
    """Why no batch can be read at this position, if none can."""
    left = size - position
    if not any(head) and _is_zero(file, position):
        return Problem(position, f"{left} bytes of zeros to the end: never written, or torn off by a crash")
    if left <= MAGIC_OFFSET:
        return Problem(position, f"torn tail: {left} bytes are left, too few for a batch")
    length = int.from_bytes(head[8:12], "big", signed=True)
    magic = head[MAGIC_OFFSET]
    if magic > MAGIC:
        return Problem(position, f"no batch begins here (format {magic}); {left} bytes to the end cannot be read")
    least = HEADER_SIZE - LOG_OVERHEAD if magic == MAGIC else _OLD_MINIMUM
    if length < least:
        return Problem(
            position, f"the batch says it is {length} bytes long, less than its header; {left} bytes cannot be read"
        )
    if LOG_OVERHEAD + length > left:
        return Problem(
            position, f"torn tail: the batch says it is {LOG_OVERHEAD + length} bytes long, and {left} bytes are left"
        )
    return None


def _is_zero(file: BinaryIO, position: int) -> bool:
    file.seek(position)
    while chunk := file.read(_ZERO_CHUNK):
        if any(chunk):
            return False
    return True


def _batch(data: bytes, header: BatchHeader, position: int, *, records: bool, shallow: bool) -> Iterator[Item]:
    sound = check_crc(data, 0, header)
    problems: list[Problem] = []
    found: list[Record] = []
    if not sound:
        problems.append(Problem(position, f"bad CRC: the batch at offset {header.base_offset} is damaged"))
    elif header.last_offset_delta < 0 or header.record_count < 0:
        problems.append(
            Problem(
                position, f"lying counts: {header.record_count} records, last offset delta {header.last_offset_delta}"
            )
        )
    elif not shallow or header.is_control:
        try:
            found = read_records(data, 0, header)
        except KafkaError as error:
            problems.append(Problem(position, f"lying records: {error.message or error}"))
        problems += _record_problems(found, header, position)
    yield _entry(header, position, sound, _control_kind(header, found))
    if records:
        for record in found:
            yield RecordEntry(position, record.offset, record.timestamp, record.key, record.value, list(record.headers))
    yield from problems


def _record_problems(records: list[Record], header: BatchHeader, position: int) -> Iterator[Problem]:
    before = header.base_offset - 1
    for record in records:
        if not before < record.offset <= header.last_offset:
            yield Problem(
                position,
                f"offsets out of order: a record has the offset {record.offset} behind {before} in a batch of "
                f"{header.base_offset} to {header.last_offset}",
            )
            return
        before = record.offset


def _control_kind(header: BatchHeader, records: list[Record]) -> str | None:
    if not header.is_control:
        return None
    key = records[0].key if records else None
    if key is None or len(key) < 4:
        return "control"
    number = int.from_bytes(key[2:4], "big")
    return _CONTROL_KINDS.get(number, f"control {number}")


def _entry(header: BatchHeader, position: int, sound: bool, control: str | None) -> BatchEntry:
    try:
        compression = header.compression.name.lower()
    except KafkaError:
        compression = f"unknown ({header.attributes & 7})"
    return BatchEntry(
        position,
        header.size_in_bytes,
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.base_timestamp,
        header.max_timestamp,
        "LogAppendTime" if header.timestamp_type else "CreateTime",
        compression,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
        header.is_transactional,
        control,
        header.delete_horizon_ms,
        header.magic,
        header.crc,
        sound,
    )


def _old(head: bytes, position: int, size: int) -> BatchEntry:
    """A message of format 0 or 1; a compressed one has the offset of its last record."""
    offset = int.from_bytes(head[:8], "big", signed=True)
    magic, codec = head[MAGIC_OFFSET], head[MAGIC_OFFSET + 1] & 7
    timestamp = int.from_bytes(head[18:26], "big", signed=True) if magic == 1 else -1
    names = ("none", "gzip", "snappy", "lz4")
    compression = names[codec] if codec < len(names) else f"unknown ({codec})"
    crc = int.from_bytes(head[12:16], "big")
    return BatchEntry(
        position, size, offset, offset, 1, timestamp, timestamp, "CreateTime", compression, -1, -1, -1, -1, -1, False,
        None, None, magic, crc, None,
    )  # fmt: skip


class _Order:
    """What must not descend from batch to batch."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._next_offset = base_offset
        self._epoch = -1

    def check(self, header: BatchHeader, position: int) -> Iterator[Problem]:
        if header.base_offset < self._next_offset:
            what = (
                f"the segment begins with {self._base_offset} by its name"
                if self._next_offset == self._base_offset
                else f"the batch before it ends with {self._next_offset - 1}"
            )
            yield Problem(position, f"offsets out of order: the batch begins with {header.base_offset}, and {what}")
        if header.partition_leader_epoch < self._epoch:
            yield Problem(position, f"the leader epoch descends from {self._epoch} to {header.partition_leader_epoch}")
        self._next_offset = max(self._next_offset, header.next_offset)
        self._epoch = max(self._epoch, header.partition_leader_epoch)

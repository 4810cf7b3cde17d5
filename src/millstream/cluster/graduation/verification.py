"""Compares what two clusters hold: number, first and last offset, and a checksum of every record of every partition.

The checksum covers offset, timestamp, key, value and headers of each record, in order, and both sides are read anew:
it says what a consumer gets now, not what was sent. Records that only take an offset (`gaps.filler`) do not count.

A source that goes on living may have deleted or compacted records since they were copied. What retention deleted at its
beginning is left out of the comparison; for a compacted topic whose checksums differ, each record that the source
still has must be the same at the target.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.graduation.copying import Progress, portable_timestamp
from millstream.cluster.graduation.gaps import is_filler
from millstream.cluster.graduation.plan import Partition
from millstream.cluster.graduation.reading import read, size_of

if TYPE_CHECKING:
    from confluent_kafka import Message

_NUMBERS = struct.Struct(">qq")
_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)
_WINDOW = 200_000


class Digest(NamedTuple):
    """What one side holds in a range of one partition; first and last are -1 if it is empty."""

    records: int
    first: int
    last: int
    checksum: str


class Comparison(NamedTuple):
    """One partition on both sides."""

    topic: str
    partition: int
    source: Digest
    target: Digest
    equal: bool
    superseded: int
    """Records that the source has compacted away since they were copied."""


class _Digest:
    def __init__(self) -> None:
        self.records, self.first, self.last = 0, -1, -1
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, message: Message) -> None:
        offset = message.offset() or 0
        if self.first < 0:
            self.first = offset
        self.last = offset
        self.records += 1
        self._hash.update(record_bytes(message))

    def result(self) -> Digest:
        return Digest(self.records, self.first, self.last, self._hash.hexdigest())


def record_bytes(message: Any) -> bytes:
    """All of a record that must be the same, so that different records have different bytes."""
    parts = [_NUMBERS.pack(message.offset(), portable_timestamp(message.timestamp()[1]))]
    for data in (message.key(), message.value()):
        parts += [_NULL] if data is None else [_SIZE.pack(len(data)), data]
    for name, data in message.headers() or ():
        encoded = name.encode()
        parts += [_SIZE.pack(len(encoded)), encoded]
        parts += [_NULL] if data is None else [_SIZE.pack(len(data)), data]
    return b"".join(parts)


def digests(
    connection: Connection, ranges: Mapping[Partition, tuple[int, int]], progress: Callable[[Progress], None]
) -> dict[Partition, Digest]:
    """What a cluster holds in each range [first, end)."""
    found = {where: _Digest() for where in ranges}
    records = size = offsets = 0
    at = {where: first for where, (first, _) in ranges.items()}
    for chunk in read(connection, ranges):
        for where, messages in chunk.records.items():
            digest = found[where]
            for message in messages:
                if is_filler(message.key(), message.headers() if message.value() is None else None):
                    continue
                digest.add(message)
                records += 1
                size += size_of(message)
            offsets += (messages[-1].offset() or 0) + 1 - at[where]
            at[where] = (messages[-1].offset() or 0) + 1
        for where in chunk.finished:
            offsets += max(0, ranges[where][1] - at[where])
        progress(Progress(offsets, records, size))
    return {where: digest.result() for where, digest in found.items()}


def compare(
    source: Connection,
    target: Connection,
    ranges: Mapping[Partition, tuple[int, int]],
    compacted: frozenset[str],
    progress: Callable[[Progress], None],
) -> list[Comparison]:
    """Both sides of each range; progress counts the offsets of both."""
    read_here = Progress(0, 0, 0)

    def first_half(seen: Progress) -> None:
        nonlocal read_here
        read_here = seen
        progress(seen)

    def second_half(seen: Progress) -> None:
        progress(Progress(*(here + there for here, there in zip(read_here, seen, strict=True))))

    ours = digests(source, ranges, first_half)
    theirs = digests(target, ranges, second_half)
    found = []
    for where in sorted(ranges):
        equal, superseded = ours[where] == theirs[where], 0
        if not equal and where.topic in compacted:
            equal, superseded = _still_there(source, target, where, *ranges[where])
        found.append(Comparison(*where, ours[where], theirs[where], equal, superseded))
    return found


def _still_there(source: Connection, target: Connection, where: Partition, first: int, end: int) -> tuple[bool, int]:
    """Whether the target has every record that the source still has, and how many more it has."""
    more = 0
    for low in range(first, end, _WINDOW):
        window = {where: (low, min(low + _WINDOW, end))}
        ours, theirs = _by_offset(source, window), _by_offset(target, window)
        if any(theirs.get(offset) != checksum for offset, checksum in ours.items()):
            return False, 0
        more += len(theirs) - len(ours)
    return True, more


def _by_offset(connection: Connection, window: Mapping[Partition, tuple[int, int]]) -> dict[int, bytes]:
    return {
        message.offset() or 0: hashlib.blake2b(record_bytes(message), digest_size=16).digest()
        for chunk in read(connection, window)
        for messages in chunk.records.values()
        for message in messages
        if not is_filler(message.key(), message.headers() if message.value() is None else None)
    }

"""The indexes of a segment read for a person, and checked against the segment beside them (if it is there).

Apache Kafka preallocates the indexes of the active segment, so zeros up to the end of the file are no entries. An
offset index must ascend and each entry name the beginning of a batch that the offset can be found from; a time index
must ascend and each entry name the greatest timestamp up to the batch with its offset; a transaction index must be in
the order of its markers. Indexes are small and are held in memory whole, the segment is read header by header.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Any, Final

from millstream.log import offset_index, time_index, transaction_index
from millstream.log.dump_items import AbortedEntry, Item, OffsetIndexEntry, Problem, TimeIndexEntry
from millstream.log.dump_segment import headers

_MAX_BYTES: Final = 1 << 30


def dump_offset_index(path: Path, base_offset: int) -> Iterator[Item]:
    raw, problems = _entries(path, offset_index.ENTRY)
    entries = [OffsetIndexEntry(at, base_offset + relative, place) for at, (relative, place) in raw]
    for before, entry in pairwise(entries):
        if entry.offset <= before.offset or entry.segment_position <= before.segment_position:
            problems.append(
                Problem(
                    entry.position,
                    f"not increasing: offset {entry.offset} at {entry.segment_position} behind offset {before.offset} "
                    f"at {before.segment_position}",
                )
            )
    segment = _segment(path)
    if segment is not None:
        problems += _check_positions(entries, segment)
    yield from _merged(entries, problems)


def _check_positions(entries: list[OffsetIndexEntry], segment: Path) -> Iterator[Problem]:
    wanted = {entry.segment_position: entry for entry in entries}
    end = 0
    for position, header in headers(segment):
        entry = wanted.pop(position, None)
        end = position + header.size_in_bytes
        if entry is not None and not header.base_offset <= entry.offset:
            yield Problem(
                entry.position,
                f"offset {entry.offset} is said to be at {position}, where the batch begins with {header.base_offset}",
            )
    for entry in wanted.values():
        place = "behind its end" if entry.segment_position >= end else "where no batch begins"
        yield Problem(
            entry.position, f"points nowhere: offset {entry.offset} at {entry.segment_position} of the segment, {place}"
        )


def dump_time_index(path: Path, base_offset: int) -> Iterator[Item]:
    raw, problems = _entries(path, time_index.ENTRY)
    entries = [TimeIndexEntry(at, timestamp, base_offset + relative) for at, (timestamp, relative) in raw]
    for before, entry in pairwise(entries):
        if entry.timestamp <= before.timestamp or entry.offset < before.offset:
            problems.append(
                Problem(
                    entry.position,
                    f"not increasing: timestamp {entry.timestamp} at offset {entry.offset} behind {before.timestamp} "
                    f"at {before.offset}",
                )
            )
    segment = _segment(path)
    if segment is not None:
        problems += _check_timestamps(entries, segment)
    yield from _merged(entries, problems)


def _check_timestamps(entries: list[TimeIndexEntry], segment: Path) -> Iterator[Problem]:
    waiting = sorted(entries, key=lambda entry: entry.offset, reverse=True)
    greatest = last = -1
    for _, header in headers(segment):
        greatest, last = max(greatest, header.max_timestamp), header.last_offset
        while waiting and waiting[-1].offset <= last:
            entry = waiting.pop()
            if entry.timestamp != greatest:
                yield Problem(
                    entry.position,
                    f"the greatest timestamp up to offset {entry.offset} is {greatest}, not {entry.timestamp}",
                )
    for entry in reversed(waiting):
        yield Problem(entry.position, f"points nowhere: offset {entry.offset}, and the segment ends with {last}")


def dump_transaction_index(path: Path, base_offset: int) -> Iterator[Item]:
    raw, problems = _entries(path, transaction_index.ENTRY)
    entries = [AbortedEntry(at, *fields) for at, (_, *fields) in raw]
    problems += [Problem(at, f"unknown version {version}") for at, (version, *_) in raw if version != 0]
    for entry in entries:
        if entry.first_offset > entry.last_offset:
            problems.append(
                Problem(entry.position, f"a transaction from offset {entry.first_offset} back to {entry.last_offset}")
            )
        if entry.last_offset < base_offset:
            problems.append(
                Problem(entry.position, f"points nowhere: a marker at {entry.last_offset}, before the segment")
            )
    for before, entry in pairwise(entries):
        if entry.last_offset <= before.last_offset:
            problems.append(
                Problem(entry.position, f"not increasing: a marker at {entry.last_offset} behind {before.last_offset}")
            )
    yield from _merged(entries, problems)


def _entries(path: Path, struct: Struct) -> tuple[list[tuple[int, tuple[Any, ...]]], list[Problem]]:
    """Position and fields of the entries, without the zeros behind them."""
    size = path.stat().st_size
    if size > _MAX_BYTES:
        return [], [Problem(None, f"{size} bytes are too many for an index")]
    data = path.read_bytes()
    end = len(data.rstrip(b"\0"))
    count = min(-(-end // struct.size), len(data) // struct.size)
    problems = []
    rest = len(data) % struct.size
    if rest and any(data[-rest:]):
        problems.append(Problem(len(data) - rest, f"torn tail: {rest} bytes, and an entry has {struct.size}"))
    return [(n * struct.size, struct.unpack_from(data, n * struct.size)) for n in range(count)], problems


def _segment(path: Path) -> Path | None:
    name, _, more = path.name.partition(".")
    suffix = more.partition(".")[2]
    segment = path.with_name(f"{name}.log" + (f".{suffix}" if suffix else ""))
    return segment if segment.is_file() else None


def _merged(entries: list[Any], problems: list[Problem]) -> Iterator[Item]:
    """Each problem behind the entry it is about."""
    by_position: dict[int | None, list[Problem]] = {}
    for problem in problems:
        by_position.setdefault(problem.position, []).append(problem)
    for entry in entries:
        yield entry
        yield from by_position.pop(entry.position, [])
    for rest in by_position.values():
        yield from rest

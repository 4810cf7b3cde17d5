"""Producer snapshots, checkpoints and property files read for a person, with what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from crc32c import crc32c

from millstream.log.dump_items import (
    CheckpointEntry,
    EpochEntry,
    Item,
    Problem,
    ProducerSnapshotEntry,
    PropertyEntry,
)

_SNAPSHOT_HEADER: Final = Struct(">hIi")
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_START: Final = 6
_NO_TRANSACTION: Final = -1


def dump_snapshot(path: Path) -> Iterator[Item]:
    """The layout is in `producer_state`."""
    data = path.read_bytes()
    if len(data) < _SNAPSHOT_HEADER.size:
        yield Problem(0, f"torn: {len(data)} bytes, and the header alone has {_SNAPSHOT_HEADER.size}")
        return
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != 1:
        yield Problem(0, f"unknown version {version}")
        return
    if crc32c(data[_CRC_START:]) != crc:
        yield Problem(2, "bad CRC")
    body = data[_SNAPSHOT_HEADER.size :]
    there, rest = divmod(len(body), _SNAPSHOT_ENTRY.size)
    if there != count or rest:
        yield Problem(6, f"lying count: {count} producers are said, and there are {len(body)} bytes for {there}")
    seen: set[int] = set()
    for number in range(there):
        position = _SNAPSHOT_HEADER.size + number * _SNAPSHOT_ENTRY.size
        producer_id, *fields, opened = _SNAPSHOT_ENTRY.unpack_from(data, position)
        open_at = opened if opened != _NO_TRANSACTION else None
        yield ProducerSnapshotEntry._make((position, producer_id, *fields, open_at))
        if producer_id in seen:
            yield Problem(position, f"producer {producer_id} is there twice")
        seen.add(producer_id)


def dump_epochs(path: Path) -> Iterator[Item]:
    before: EpochEntry | None = None
    for position, fields in _checkpoint(path, 2):
        if isinstance(fields, str):
            yield Problem(position, fields)
            continue
        entry = EpochEntry(int(fields[0]), int(fields[1]))
        yield entry
        if before is not None and (
            entry.leader_epoch <= before.leader_epoch or entry.start_offset < before.start_offset
        ):
            yield Problem(
                position,
                f"not increasing: epoch {entry.leader_epoch} from {entry.start_offset} behind epoch "
                f"{before.leader_epoch} from {before.start_offset}",
            )
        before = entry


def dump_offsets(path: Path) -> Iterator[Item]:
    seen: set[tuple[str, int]] = set()
    for position, fields in _checkpoint(path, 3):
        if isinstance(fields, str):
            yield Problem(position, fields)
            continue
        entry = CheckpointEntry(fields[0], int(fields[1]), int(fields[2]))
        yield entry
        if (entry.topic, entry.partition) in seen:
            yield Problem(position, f"{entry.topic}-{entry.partition} is there twice")
        seen.add((entry.topic, entry.partition))


def _checkpoint(path: Path, width: int) -> Iterator[tuple[int, list[str] | str]]:
    """Position and fields of each line behind the version and the count, or what is wrong with it."""
    lines = path.read_bytes().split(b"\n")
    if lines == [b""]:
        return  # Apache Kafka makes the file before it has anything to write
    if len(lines) < 2 or lines[0].strip() != b"0":
        yield 0, f"unknown version {lines[0][:20].decode(errors='replace')!r}"
        return
    if not lines[1].strip().isdigit():
        yield len(lines[0]) + 1, f"{lines[1][:20].decode(errors='replace')!r} is no count of entries"
        return
    position = len(lines[0]) + len(lines[1]) + 2
    found = 0
    for line in lines[2:]:
        if line.strip():
            found += 1
            fields = line.decode(errors="replace").split()
            numbers = fields if width == 2 else fields[1:]
            if len(fields) == width and all(number.lstrip("-").isdigit() for number in numbers):
                yield position, fields
            else:
                yield position, f"no entry: {line[:60].decode(errors='replace')!r}"
        position += len(line) + 1
    if found != int(lines[1]):
        yield len(lines[0]) + 1, f"lying count: {int(lines[1])} entries are said, and there are {found}"


def dump_properties(path: Path, separator: str) -> Iterator[Item]:
    position = 0
    for line in path.read_bytes().split(b"\n"):
        text = line.decode(errors="replace").strip()
        if text and not text.startswith("#"):
            name, found, value = text.partition(separator)
            if found:
                yield PropertyEntry(name.strip(), value.strip())
            else:
                yield Problem(position, f"no property: {text[:60]!r}")
        position += len(line) + 1

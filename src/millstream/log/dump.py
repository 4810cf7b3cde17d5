"""The files of a log, read for a person: what is in them, and what is wrong with them. Nothing is changed or recovered.

`dump(path)` opens one file of any kind that Millstream or Apache Kafka keeps in a data folder; its `items` come one by
one as they are read, so a segment of any size takes the memory of one batch. A `Problem` among them says what is wrong
and at which byte. `files_in` finds the files of a folder, whether it is one partition's or a whole data folder.

This module tells the kinds apart by the files' names; `dump_segment`, `dump_indexes` and `dump_state` read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from millstream.log.checkpoints import CLEANER_NAME, LOG_START_NAME, RECOVERY_POINT_NAME, REPLICATION_NAME
from millstream.log.dump_indexes import dump_offset_index, dump_time_index, dump_transaction_index
from millstream.log.dump_items import Item, Problem
from millstream.log.dump_segment import dump_segment
from millstream.log.dump_state import dump_epochs, dump_offsets, dump_properties, dump_snapshot

SEGMENT: Final = "segment"
_NUMBERED = re.compile(r"(\d{20})(?:-\d{10})?\.(log|index|timeindex|txnindex|snapshot|checkpoint)(?:\.\w+)?")
_KINDS: Final[dict[str, tuple[str, Callable[[Path, int], Iterator[Item]]]]] = {
    "index": ("offset index", dump_offset_index),
    "timeindex": ("time index", dump_time_index),
    "txnindex": ("transaction index", dump_transaction_index),
    "snapshot": ("producer snapshot", lambda path, base: dump_snapshot(path)),
}
_NAMED: Final[dict[str, tuple[str, Callable[[Path], Iterator[Item]]]]] = {
    "leader-epoch-checkpoint": ("leader epochs", dump_epochs),
    RECOVERY_POINT_NAME: ("offset checkpoint", dump_offsets),
    LOG_START_NAME: ("offset checkpoint", dump_offsets),
    REPLICATION_NAME: ("offset checkpoint", dump_offsets),
    CLEANER_NAME: ("offset checkpoint", dump_offsets),
    "partition.metadata": ("partition metadata", lambda path: dump_properties(path, ":")),
    "meta.properties": ("node metadata", lambda path: dump_properties(path, "=")),
}


class Dump(NamedTuple):
    """One file. `items` is read once, and reads the file as it goes."""

    path: Path
    kind: str
    size: int
    items: Iterator[Item]


def is_known(path: Path) -> bool:
    return path.name in _NAMED or _NUMBERED.fullmatch(path.name) is not None


def dump(path: Path, *, records: bool = False, shallow: bool = False) -> Dump:
    """Opens a file. With `records` each batch is followed by its records; `shallow` leaves batches closed.

    ValueError if the name is not one of a log's files, OSError if it cannot be read.
    """
    size = path.stat().st_size
    if path.name in _NAMED:
        kind, reader = _NAMED[path.name]
        return Dump(path, kind, size, reader(path))
    match = _NUMBERED.fullmatch(path.name)
    if match is None:
        raise ValueError(
            "not a file of a log by its name (00000000000000000000.log, .index, .timeindex, .txnindex, .snapshot, "
            ".checkpoint; leader-epoch-checkpoint, *-offset-checkpoint, partition.metadata, meta.properties)"
        )
    base_offset = int(match[1])
    if match[2] in ("log", "checkpoint"):
        kind = SEGMENT if match[2] == "log" else "metadata snapshot"
        # A snapshot of the metadata log is named after its end and counts its batches from 0.
        first = base_offset if match[2] == "log" else 0
        return Dump(path, kind, size, dump_segment(path, first, records=records, shallow=shallow))
    kind, read_index = _KINDS[match[2]]
    return Dump(path, kind, size, read_index(path, base_offset))


def files_in(folder: Path) -> list[Path]:
    """The log files in a folder and in the folders below it, in the order of their names."""
    return sorted((path for path in folder.rglob("*") if is_known(path) and path.is_file()), key=_order)


def _order(path: Path) -> tuple[Any, ...]:
    return (len(path.parts), path.parent, path.name)


class Overlap:
    """Told the segments of one folder in order, finds those whose offsets run into each other."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._file = ""
        self._last_offset = -1

    def check(self, path: Path, first_offset: int, last_offset: int) -> Problem | None:
        same = path.parent == self._folder
        problem = None
        if same and first_offset <= self._last_offset:
            problem = Problem(
                0, f"offsets begin at {first_offset}, but {self._file} goes to {self._last_offset} already"
            )
        self._folder, self._file, self._last_offset = path.parent, path.name, last_offset
        return problem

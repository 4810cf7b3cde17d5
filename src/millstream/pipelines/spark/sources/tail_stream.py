"""`millstream-tail`: the lines of files that grow, each once, as a stream.

An offset says how far each file was read: `{"files": {"DEVICE:INODE": {"path", "generation", "position", "head"}}}`.

- A file is known by device and inode, so one that is renamed (rotation) is read on under its new name, in or beside the
  pattern, until nothing of it is left.
- `head` is the length and CRC of the file's first bytes. A file that is shorter than its position, or begins
  differently, was cut off or replaced: it is read from its beginning, as the next generation.
- Only whole lines are read; what follows the last newline waits. A line longer than `LONGEST_LINE` comes in pieces.
- The bytes of a micro-batch follow from its two offsets, so the same batch has the same lines whenever it is asked for.
  A file that is gone by then is an error: lines that were promised cannot be had.

This module is imported by Spark's Python workers, and reads files of the machine it runs on.
"""

from __future__ import annotations

import glob
import json
import logging
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

NAME = "millstream-tail"
SCHEMA = "value BINARY, file STRING, position BIGINT"
LIMIT = 500_000
"""How many lines a micro-batch has at most, if nobody says."""
LONGEST_LINE = 16 * 1024 * 1024
_HEAD = 256
_BLOCK = 1024 * 1024
_ROWS = 10_000
_NAP = 0.1
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_ARROW = pa.schema([pa.field("value", pa.binary()), pa.field("file", pa.string()), pa.field("position", pa.int64())])
_log = logging.getLogger(__name__)

Entry = dict[str, Any]
Offset = dict[str, dict[str, Entry]]


class TailStream(DataSource):
    """Options: `paths` (JSON), `start` (earliest or latest), `limit`; for a batch `from` and `to`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> TailStreamReader:  # noqa: N802 - Spark's name
        paths = json.loads(self.options["paths"])
        return TailStreamReader(paths, self.options["start"] == "latest", int(self.options.get("limit", LIMIT)))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TailBatchReader(parts_between(json.loads(self.options["from"]), json.loads(self.options["to"])))


class Part(InputPartition):
    """The lines of one file between two positions."""

    def __init__(self, path: str, identity: str, start: int, end: int, head: list[int]) -> None:
        self.path = path
        self.head = head
        self.identity = identity
        self.start = start
        self.end = end


class TailStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in one Python process beside the driver; `read` in the workers."""

    def __init__(self, paths: Sequence[str], from_the_end: bool, limit: int) -> None:
        self._paths = paths
        self._from_the_end = from_the_end
        self._limit = limit
        self._ceilings: dict[str, int] | None = None
        self._elsewhere: dict[str, str | None] = {}
        """Where files are that the patterns do not find any more; None: nowhere."""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        files = {}
        if self._from_the_end:
            for identity, path in matching(self._paths).items():
                with Path(path).open("rb") as file:
                    end = _end_of_last_line(file, os.fstat(file.fileno()).st_size)
                    files[identity] = _entry(path, 0, end, file)
        return {"files": files}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that will be read."""
        self._ceilings = {identity: Path(path).stat().st_size for identity, path in matching(self._paths).items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        known = start["files"]
        found = matching(self._paths)
        found |= self._moved({identity: entry for identity, entry in known.items() if identity not in found})
        if self._ceilings is not None:
            found = {identity: path for identity, path in found.items() if identity in self._ceilings}
        share = max(1, rows // max(1, len(found)))
        files: dict[str, Entry] = {}
        news = False
        for identity, path in sorted(found.items(), key=lambda item: item[1]):
            try:
                entry, grown = self._advance(identity, path, known.get(identity), share)
            except FileNotFoundError:  # renamed just now: it is found under its new name next time
                if identity in known:
                    files[identity] = known[identity]
                continue
            files[identity] = entry
            news |= grown
        if news:
            return {"files": files}
        if self._ceilings is None:
            time.sleep(_NAP)
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return parts_between(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return read_part(partition)

    def commit(self, end: Offset) -> None:
        """Files keep no positions."""

    def stop(self) -> None:
        """Nothing is open."""

    def _moved(self, missing: dict[str, Entry]) -> dict[str, str]:
        """Known files that the patterns do not find: where they are now, if they are."""
        found = {}
        for identity, entry in missing.items():
            path = self._elsewhere.get(identity, entry["path"])
            if path is not None and _identity(path) != identity:
                path = _renamed(path, identity)
            self._elsewhere[identity] = path
            if path is not None:
                found[identity] = path
        return found

    def _advance(self, identity: str, path: str, known: Entry | None, lines: int) -> tuple[Entry, bool]:
        """How far a file can be read now, and whether that is further than it was."""
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if self._ceilings is not None:
                size = min(size, self._ceilings[identity])
            position, generation = (0, 0) if known is None else (known["position"], known["generation"])
            cut = known is not None and known["position"] > os.fstat(file.fileno()).st_size
            if known is not None and (cut or not _same_head(file, known["head"])):
                _log.warning("%s was cut off or replaced: it is read from its beginning", path)
                position, generation = 0, generation + 1
            end = _end_of_lines(file, position, size, lines)
            if end == position and known is not None:
                return known, False
            return _entry(path, generation, end, file), end > position


class TailBatchReader(DataSourceReader):
    """The lines between two offsets once more."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._parts) or [Part("", "", 0, 0, [])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return read_part(partition)


def matching(patterns: Sequence[str]) -> dict[str, str]:
    """The files there are, by identity; compressed ones, which rotation leaves behind, are not lines."""
    found = {}
    for pattern in patterns:
        for path in glob.glob(pattern, recursive=True):  # noqa: PTH207 - Path.glob takes no absolute pattern
            if not path.endswith(_COMPRESSED):
                try:
                    status = Path(path).stat()
                except FileNotFoundError:
                    continue
                if Path(path).is_file():
                    found[f"{status.st_dev}:{status.st_ino}"] = path
    return found


def parts_between(start: Offset, end: Offset) -> list[Part]:
    """What is to be read of each file."""
    parts = []
    for identity, entry in end["files"].items():
        before = start["files"].get(identity)
        same = before is not None and before["generation"] == entry["generation"]
        first = before["position"] if before is not None and same else 0
        if first < entry["position"]:
            parts.append(Part(entry["path"], identity, first, entry["position"], entry["head"]))
    return parts


def read_part(part: Part) -> Iterator[pa.RecordBatch]:
    """The lines of a part, without their newlines."""
    if part.start == part.end:
        return
    values: list[bytes] = []
    positions: list[int] = []
    with _open(part) as file:
        file.seek(part.start)
        position, left = part.start, part.end - part.start
        while left:
            line = file.readline(min(left, LONGEST_LINE))
            if not line:
                raise EOFError(f"{part.path} is shorter than it was: the lines up to {part.end} cannot be read again")
            values.append(line.removesuffix(b"\n").removesuffix(b"\r"))
            positions.append(position)
            position, left = position + len(line), left - len(line)
            if len(values) == _ROWS:
                yield _batch(values, part.path, positions)
                values, positions = [], []
    if values:
        yield _batch(values, part.path, positions)


def _batch(values: list[bytes], path: str, positions: list[int]) -> pa.RecordBatch:
    files = pa.array([path] * len(values), type=pa.string())
    columns = [pa.array(values, type=pa.binary()), files, pa.array(positions, type=pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _open(part: Part) -> IO[bytes]:
    """The file of a part, under whatever name it has now."""
    path = part.path if _identity(part.path) == part.identity else _renamed(part.path, part.identity)
    if path is None:
        raise FileNotFoundError(
            f"{part.path} is gone, its lines up to byte {part.end} are not done: bring it back, or reset the pipeline"
        )
    file = Path(path).open("rb")  # noqa: SIM115 - closed by the caller
    if not _same_head(file, part.head):
        file.close()
        raise EOFError(f"{part.path} was replaced, its lines up to byte {part.end} are not done: reset the pipeline")
    return file


def _identity(path: str) -> str | None:
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    return f"{status.st_dev}:{status.st_ino}"


def _renamed(path: str, identity: str) -> str | None:
    """Where in its folder a file is now."""
    folder = Path(path).parent
    if not folder.is_dir():
        return None
    inode = int(identity.partition(":")[2])
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.inode() == inode and _identity(entry.path) == identity:
                return entry.path
    return None


def _entry(path: str, generation: int, position: int, file: IO[bytes]) -> Entry:
    length = min(position, _HEAD)
    return {"path": path, "generation": generation, "position": position, "head": [length, _checksum(file, length)]}


def _same_head(file: IO[bytes], head: list[int]) -> bool:
    """Whether the file begins as it did; also false if it is shorter than that."""
    length, checksum = head
    return os.fstat(file.fileno()).st_size >= length and _checksum(file, length) == checksum


def _checksum(file: IO[bytes], length: int) -> int:
    file.seek(0)
    return zlib.crc32(file.read(length))


def _end_of_lines(file: IO[bytes], position: int, size: int, lines: int) -> int:
    """The position after the last whole line, or after so many lines."""
    file.seek(position)
    end, at = position, position
    while at < size:
        block = file.read(min(_BLOCK, size - at))
        if not block:
            break
        count = block.count(b"\n")
        if count >= lines:
            return at + _after_line(block, lines)
        if count:
            lines -= count
            end = at + block.rfind(b"\n") + 1
        at += len(block)
        if at - end >= LONGEST_LINE:
            end, lines = end + LONGEST_LINE, lines - 1
            if lines <= 0:
                return end
    return end


def _after_line(block: bytes, lines: int) -> int:
    at = 0
    for _ in range(lines):
        at = block.index(b"\n", at) + 1
    return at


def _end_of_last_line(file: IO[bytes], size: int) -> int:
    """The position after the last newline before `size`."""
    at = size
    while at > 0:
        begin = max(0, at - _BLOCK)
        file.seek(begin)
        found = file.read(at - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        at = begin
    return 0

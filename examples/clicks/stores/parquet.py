"""Clicks in Parquet files, which have no keys: that nothing is saved twice follows from the files' names.

A file is called after what is in it, `partition=N/FIRST-LAST.parquet` with the offsets of the first and the last
record. It is written under another name, renamed when it is whole, and never changed. Whoever saves holds the
partition's lock, looks which offsets are there already, and writes only the others. So a member that saved and died
before it could commit does no harm, nor does one that was thought dead and wakes up after another has taken over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clicks.click import Click
from clicks.stores import Batch, StoreAway

TYPES = {"campaign_id": pa.int8(), "pub_id": pa.int8(), "timestamp": pa.timestamp("ms", tz="UTC")}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in Click._fields])


class ParquetStore:
    """A folder, with a folder in it for each partition."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with _away():
            folder.mkdir(parents=True, exist_ok=True)

    def save(self, batches: Sequence[Batch]) -> None:
        with _away():
            for batch in batches:
                with self._lock(batch.partition) as folder:
                    for first, last in _missing(batch, _ranges(folder)):
                        _write(folder, first, last, batch)

    def count(self) -> int:
        return sum(pq.read_metadata(file).num_rows for file in self._files())

    def rows(self) -> Iterator[Click]:
        for file in self._files():
            with pq.ParquetFile(file) as parquet:
                table = parquet.read()
            table = table.set_column(3, "timestamp", table["timestamp"].cast(pa.int64()))
            yield from map(Click._make, zip(*(column.to_pylist() for column in table.columns), strict=True))

    def close(self) -> None:
        """Nothing is open between two saves."""

    @contextmanager
    def _lock(self, partition: int) -> Iterator[Path]:
        """The partition's folder, for one process at a time. Only the store's own folder is not made here: if it is
        gone, the store is away."""
        folder = self._folder / f"partition={partition}"
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(lock)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("partition=*/*.parquet"))


def _ranges(folder: Path) -> list[tuple[int, int]]:
    """First and last offset of each file."""
    names = (file.stem.partition("-") for file in folder.glob("*.parquet"))
    return sorted((int(first), int(last)) for first, _, last in names)


def _missing(batch: Batch, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The offsets of the batch that are in none of the ranges."""
    first = batch.first
    for there_first, there_last in ranges:
        if there_last < first:
            continue
        if there_first > batch.last:
            break
        if there_first > first:
            yield first, there_first - 1
        first = there_last + 1
    if first <= batch.last:
        yield first, batch.last


def _write(folder: Path, first: int, last: int, batch: Batch) -> None:
    clicks = [click for offset, click in zip(batch.offsets, batch.clicks, strict=True) if first <= offset <= last]
    columns = list(zip(*clicks, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    part = folder / f".{first}-{last}.part"
    with part.open("wb") as file:
        pq.write_table(pa.table(arrays, schema=SCHEMA), file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    part.rename(folder / f"{first:020}-{last:020}.parquet")


@contextmanager
def _away() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreAway(f"{error.strerror or error}: {error.filename}" if error.filename else str(error)) from error


def open_store(address: str) -> ParquetStore:
    return ParquetStore(Path(address))

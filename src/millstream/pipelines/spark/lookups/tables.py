"""Stores that can be read whole: memory and files, as tables that Spark joins with. They are small enough to be
everywhere.

A table's first column is the key, as text, under the name `KEY`; no key is there twice. It lies in Spark's plan as
plain data, so that reading it needs no job, in micro-batches and in real-time mode alike.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from millstream.cluster.answers import nearest
from millstream.pipelines.description.fields import is_local
from millstream.pipelines.spark.lookups.store import StoreAway

KEY = "_lookup_key"
FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
COMPRESSED = (".gz", ".bz2", ".zst")
_log = logging.getLogger(__name__)


def memory_table(spark: SparkSession, rows: Mapping[str, Mapping[str, Any]], columns: StructType | None) -> DataFrame:
    """Rows written in the pipeline itself. ValueError if their values are not of the columns' types."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    wanted = columns.names if columns is not None else names
    if not wanted:
        raise ValueError("`rows` has no columns")
    unknown = [name for name in names if name not in wanted]
    if unknown:
        raise ValueError(f"`rows` has {', '.join(unknown)}, which `columns` does not name")
    try:
        types = None if columns is None else to_arrow_schema(_with_key(columns), timezone="UTC")
        data = [{KEY: key, **{name: row.get(name) for name in wanted}} for key, row in rows.items()]
        table = pa.Table.from_pylist(data, types)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"`rows` has values of different types, or not of those in `columns`: {error}") from error
    return spark.createDataFrame(_without_nothing(table))


class WatchedFile:
    """A file, read again when it has changed. The columns are those of the first time."""

    def __init__(
        self,
        path: str,
        key: str | None,
        columns: StructType | None,
        refresh: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._format = _format(path)
        self._key = key
        self._columns = columns
        self._refresh = refresh
        self._clock = clock
        self._lock = threading.Lock()
        self._due = 0.0
        self._state: object = None
        self.last: DataFrame | None = None
        """The table as it was read last."""

    def current(self, spark: SparkSession) -> DataFrame:
        """The table. ValueError if the file is not right to begin with; StoreAway if it was, and cannot be read any
        more."""
        with self._lock:
            if self.last is not None and self._clock() < self._due:
                return self.last
            try:
                state = self._stamp()
                if self.last is None or state is None or state != self._state:
                    self.last = self._read(spark)
                    self._state = state
            except (OSError, ValueError, PySparkException) as error:
                reason = f"{self._path} cannot be read: {_first_line(error)}"
                if self.last is None:
                    raise ValueError(reason) from error
                raise StoreAway(reason) from error
            self._due = self._clock() + self._refresh
            return self.last

    def _stamp(self) -> object:
        """What changes with the file; None where that cannot be seen, and the file is taken to have changed."""
        if not is_local(self._path):
            return None
        found = Path(self._path).stat()
        return None if Path(self._path).is_dir() else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self, spark: SparkSession) -> DataFrame:
        whole = spark.read.format(self._format).options(mode="FAILFAST", header="true").load
        if self._columns is None:
            guessed = spark.read.options(header="true", inferSchema="true").format(self._format).load(self._path)
            key = self._key_of(guessed.columns)
            self._columns = StructType([field for field in guessed.schema.fields if field.name != key])
        frame = whole(self._path)
        key = self._key_of(frame.columns)
        missing = [name for name in self._columns.names if name not in frame.columns]
        if missing:
            raise ValueError(f"it has no column {missing[0]}{nearest(missing[0], frame.columns)}")
        table = frame.select(
            F.col(_quoted(key)).cast("string").alias(KEY),
            *(F.col(_quoted(field.name)).cast(field.dataType).alias(field.name) for field in self._columns.fields),
        ).toArrow()
        return spark.createDataFrame(_without_nothing(self._unique(table)))

    def _key_of(self, columns: list[str]) -> str:
        if self._key is None:
            if self._format == "json":
                raise ValueError("the columns of a JSON file have no order, so `key` must say which one is the key")
            return columns[0]
        if self._key not in columns:
            raise ValueError(f"it has no column {self._key}{nearest(self._key, columns)}")
        return self._key

    def _unique(self, table: pa.Table) -> pa.Table:
        order: dict[str, int] = {}
        for position, key in enumerate(table[KEY].to_pylist()):
            if key is not None:
                order.setdefault(key, position)
        if len(order) < table.num_rows:
            _log.warning(
                "%s: %d rows have no key or one that is there already", self._path, table.num_rows - len(order)
            )
        return table.take(pa.array(list(order.values()), pa.int64()))


def _format(path: str) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in FORMATS:
        raise ValueError(f"{path}: what is in it must be seen from its name, which ends in {', '.join(FORMATS)}")
    return FORMATS[suffixes[-1]]


def _with_key(columns: StructType) -> StructType:
    return StructType([StructField(KEY, StringType()), *columns.fields])


def _without_nothing(table: pa.Table) -> pa.Table:
    """A column with nothing but nulls has no type; then it is text."""
    for index, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return table


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

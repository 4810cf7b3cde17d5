"""Tables beside the stream: static rows under a name, read once or again from time to time.

- A compacted topic: the last value of each key, without those that were deleted (tombstones). Its key is the column
  `key`.
- A database's table or query, with the same types as a database source has.
- A table of the metastore; files.

A table is kept in memory (and on disk, where it does not fit) for as long as it is current, so that not every
micro-batch reads it again. Tables have no origin and no errors: a value of a topic that does not decode is left out,
and said.
"""

from __future__ import annotations

import logging
import threading
import time

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.cluster.errors import NotFound
from millstream.pipelines import offsets
from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.sources import Table
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, without_hidden
from millstream.pipelines.spark.sources import database_schema, files, topic
from millstream.pipelines.spark.sources.arrow_rows import PROBLEM
from millstream.pipelines.spark.sources.database import raw_schema
from millstream.pipelines.spark.sources.database_stream import NAME, DatabaseStream, Settings
from millstream.pipelines.spark.values import decode

_log = logging.getLogger(__name__)


def read_table(table: Table, name: str, context: Context) -> DataFrame:
    """The table as it is now; PipelineError if it cannot be read. A topic's rows still have `_error`."""
    try:
        if table.topic is not None:
            return _topic(table, name, context)
        if table.database is not None:
            return _database(table, context)
        if table.files is not None:
            return _files(table, name, context)
        return context.spark.table(str(table.table))
    except PySparkException as error:
        raise PipelineError(f"table {name}: {str(error).strip().splitlines()[0]}", table.place) from error


class RefreshingTable:
    """A table that is read again when it is due. Safe to ask from several threads."""

    def __init__(self, table: Table, name: str, context: Context) -> None:
        self._table = table
        self._name = name
        self._context = context
        self._lock = threading.Lock()
        self._kept: DataFrame | None = None
        self._due: float | None = None

    def frame(self, now: float | None = None) -> DataFrame:
        """The rows, the same ones as long as they are current; `now` by a clock that only goes forward, in seconds."""
        now = time.monotonic() if now is None else now
        with self._lock:
            if self._kept is None or (self._due is not None and now >= self._due):
                fresh = read_table(self._table, self._name, self._context).persist(StorageLevel.MEMORY_AND_DISK)
                self._tell_bad_values(fresh)
                if self._kept is not None:
                    self._kept.unpersist()
                self._kept = fresh
                self._due = None if self._table.refresh is None else now + self._table.refresh
            kept = self._kept
        return without_hidden(kept.where(F.col(ERROR).isNull())) if ERROR in kept.columns else kept

    def close(self) -> None:
        """Frees the memory."""
        with self._lock:
            if self._kept is not None:
                self._kept.unpersist()
            self._kept = None

    def _tell_bad_values(self, rows: DataFrame) -> None:
        if ERROR not in rows.columns:
            return
        bad = rows.where(F.col(ERROR).isNotNull())
        example = bad.select(ERROR).first()
        if example is not None:
            _log.warning(
                "table %s: %d values of topic %s do not decode and are left out (%s)",
                self._name, bad.count(), self._table.topic, example[0]["message"],
            )  # fmt: skip


def _topic(table: Table, name: str, context: Context) -> DataFrame:
    assert table.topic is not None
    try:
        ends = offsets.beginning_and_end(context.cluster(None), [table.topic])
    except NotFound as error:
        raise PipelineError(f"table {name}: {error}", table.place) from error
    schema = topic.schema_of(table, name, context, lambda: [str(table.topic)])
    bounds = {topic_: {part: end for part, (_, end) in parts.items()} for topic_, parts in ends.items()}
    records = topic.read_between(table, context, {}, bounds).where("key IS NOT NULL")
    record = F.struct(*(F.col(column) for column in records.columns))
    # By offset within a partition, as compaction has it. A key is in two partitions only if some were added since.
    last = records.groupBy("key", "partition").agg(F.max_by(record, "offset").alias("record"))
    newest = F.struct("record.timestamp", "record.offset")
    latest = last.groupBy("key").agg(F.max_by("record", newest).alias("record")).select("record.*")
    return decode(latest.where("value IS NOT NULL"), table, schema)


def _database(table: Table, context: Context) -> DataFrame:
    assert table.database is not None
    spark, database = context.spark, parse_database(table.database)
    relation = database_schema.relation_of(database, table.table, table.query)
    columns = database_schema.columns_of(spark, database, relation, table.place)
    settings = Settings(table.database, relation, None, None, None, 0.0, 0.0)
    spark.dataSource.register(DatabaseStream)
    raw = spark.read.format(NAME).schema(raw_schema(columns)).option("url", settings.to_json()).load()
    problem = F.raise_error(F.concat(F.lit(f"{table.table or 'the query'}: "), F.col(PROBLEM)))
    fine = F.col(PROBLEM).isNull()
    return raw.select(*(F.when(fine, F.col(f"`{name}`")).otherwise(problem).alias(name) for name in columns.names))


def _files(table: Table, name: str, context: Context) -> DataFrame:
    # A table's names have to come from somewhere, so a CSV file has a header unless somebody says that it has none.
    defaults = {"header": "true"} if table.format == "csv" else {}
    read = table.model_copy(update={"options": {**defaults, **table.options}})
    reader = context.spark.read.format(read.format).options(mode="FAILFAST").options(**read.options)
    if read.format != "text":
        reader = reader.schema(files.schema_of(read, name, context).columns)
    return reader.load(str(read.files))

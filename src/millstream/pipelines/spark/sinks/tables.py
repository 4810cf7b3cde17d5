"""Rows into a table of Spark's catalogue (Hive's metastore), each batch exactly once.

The table's files are written as those of the files sink are (`manifest`). When a batch's files are in place its new
partitions are entered in the catalogue, and only then is the batch done, so that a crash in between is made good by the
next run. A table that is there already is taken as it is, if rows, partitions and format fit.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import TableSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks import catalog, file_formats
from millstream.pipelines.spark.sinks.catalog import CatalogTable, TableFacts, quoted
from millstream.pipelines.spark.sinks.file_batches import FileBatches, first_line
from millstream.pipelines.spark.sinks.folder import Folder
from millstream.pipelines.spark.sinks.writer import Batch


class TableWriter:
    """One table sink of one pipeline."""

    def __init__(self, sink: TableSink, context: Context) -> None:
        self._sink = sink
        self._context = context

    def open(self, schema: StructType) -> None:
        wrong = file_formats.misfit(self._sink, schema)
        if wrong:
            raise self._error(wrong)
        self._table = table_of(self._sink, self._context.spark)
        try:
            wanted = Folder(self._context.spark, self._sink.location).location if self._sink.location else None
        except PipelineError as error:
            raise self._error(error.message) from error
        try:
            self._facts = self._open(schema, wanted)
        except AnalysisException as error:
            raise self._error(first_line(error)) from error
        self._batches = FileBatches(self._sink, self._context.spark, self._facts.location, self._publish)
        # The files have the columns in the table's order, which is all that tells them apart in CSV.
        self._columns = [F.col(quoted(name)).alias(name) for name in self._facts.schema.names]

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        self._batches.write(rows.select(*self._columns), batch)
        return None

    def close(self) -> None:
        pass

    def _open(self, schema: StructType, wanted: str | None) -> TableFacts:
        """The table as it is, made if it was missing; `wanted` is where the sink wants it, if it says so."""
        facts = self._table.facts()
        if facts is None:
            self._table.create(self._sink, schema)
            facts = self._table.facts()
        if facts is None:
            raise self._error("the table was made, but is not there")
        there = Folder(self._context.spark, facts.location).location if facts.location else ""
        facts = facts._replace(location=there)
        wrong = catalog.misfit(facts, self._sink, schema, wanted)
        if wrong:
            raise self._error(wrong)
        return facts

    def _publish(self, files: list[str]) -> None:
        """The files are in place: makes the table show them."""
        folders = sorted({name.rpartition("/")[0] for name in files})
        if self._facts.partition_by:
            self._table.add_partitions(self._facts.location, folders)
        self._table.refresh()

    def _error(self, what: str) -> PipelineError:
        return PipelineError(f"table {self._sink.table}: {what}", self._sink.place)


def table_of(sink: TableSink, spark: SparkSession) -> CatalogTable:
    """The table that the sink names; without a database, of the session's current one."""
    database, dot, table = sink.table.rpartition(".")
    if not table or "." in database or (dot and not database):
        raise PipelineError(f"table {sink.table}: write `table`, or `database.table`", sink.place)
    return CatalogTable(spark, database or spark.catalog.currentDatabase(), table)


def read_table(sink: TableSink, context: Context, schema: StructType) -> DataFrame | None:
    """All that is in the table, the columns of `schema`; None if there is no such table."""
    table = table_of(sink, context.spark)
    if table.facts() is None:
        return None
    table.refresh()
    found = context.spark.table(table.name)
    return found.select(*[F.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in schema.fields])

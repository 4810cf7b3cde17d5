"""Tables of Spark's catalogue, be it Hive's metastore or the session's own: what a table is, and how one is made.

The statements are plain SQL, so that both kinds of catalogue do the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import TableSink
from millstream.pipelines.spark.sinks.file_formats import file_options, file_schema
from millstream.pipelines.spark.sinks.folder import Folder

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The folder's value for null."""


class TableFacts(NamedTuple):
    """A table as the catalogue has it."""

    schema: StructType
    format: str
    """`parquet` and the like; what else it is, if it is no table over files."""
    partition_by: tuple[str, ...]
    buckets: int
    location: str


class CatalogTable:
    """One table, which may not be there."""

    def __init__(self, spark: SparkSession, database: str, table: str) -> None:
        self._spark = spark
        self._database = database
        self._table = table
        self.name = f"{quoted(database)}.{quoted(table)}"

    def facts(self) -> TableFacts | None:
        """What it is; None if there is no such table."""
        if not self._spark.catalog.tableExists(self.name):
            return None
        (row,) = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self.name} AS JSON").collect()
        told: dict[str, Any] = json.loads(row[0])
        return TableFacts(
            self._spark.table(self.name).schema,
            _format(told),
            tuple(told.get("partition_columns") or ()),
            int(told.get("num_buckets") or 0),
            str(told.get("location") or ""),
        )

    def create(self, sink: TableSink, schema: StructType) -> None:
        """Makes it, and its database; takes in what is in its folder already.

        It always has a place of its own (for Spark that is an external table): the files outlive a table that is
        dropped, or a metastore that is lost, and no table is refused because there are files already.
        """
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(self._database)}")
        location = sink.location or self._place_in_warehouse()
        java: Any = self._spark._jvm
        columns = java.org.apache.spark.sql.types.DataType.fromJson(file_schema(sink, schema).json()).asNullable()
        options = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in file_options(sink).items())
        parts = [
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns.toDDL()}) USING {sink.format}",
            f"OPTIONS ({options})" if options else "",
            f"PARTITIONED BY ({', '.join(map(quoted, sink.partition_by))})" if sink.partition_by else "",
            f"LOCATION {literal(location)}",
        ]
        self._spark.sql(" ".join(filter(None, parts)))
        if sink.partition_by and Folder(self._spark, location).exists():
            self._spark.sql(f"ALTER TABLE {self.name} RECOVER PARTITIONS")

    def add_partitions(self, location: str, folders: Sequence[str]) -> None:
        """Folders like `day=2026-01-31/shop=7` in the table's location, those that it does not have yet."""
        partitions = []
        for folder in folders:
            values = [part.partition("=") for part in folder.split("/")]
            spec = ", ".join(f"{quoted(unquote(column))} = {_value(value)}" for column, _, value in values)
            partitions.append(f"PARTITION ({spec}) LOCATION {literal(f'{location}/{folder}')}")
        self._spark.sql(f"ALTER TABLE {self.name} ADD IF NOT EXISTS {' '.join(partitions)}")

    def refresh(self) -> None:
        """Queries of this session see the files that are there now."""
        self._spark.catalog.refreshTable(self.name)

    def _place_in_warehouse(self) -> str:
        (row,) = (
            self._spark.sql(f"DESCRIBE DATABASE {quoted(self._database)}").where("info_name = 'Location'").collect()
        )
        return f"{str(row['info_value']).rstrip('/')}/{self._table.lower()}"


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _value(folder: str) -> str:
    return "NULL" if folder == NULL_FOLDER else literal(unquote(folder))


def _format(told: dict[str, Any]) -> str:
    if told.get("type") == "VIEW":
        return "view"
    provider = str(told.get("provider") or "").lower()
    if provider != "hive":
        return provider
    library = str(told.get("serde_library") or "").lower()  # a table that was made by Hive itself
    return next((known for known in ("parquet", "orc", "avro") if known in library), library or provider)


def misfit(facts: TableFacts, sink: TableSink, schema: StructType, location: str | None) -> str | None:
    """Why rows of this schema cannot go into the table; `location` is where the sink wants it, if it says so."""
    if facts.format != sink.format:
        return f"`format` is {sink.format}, but the table is {facts.format}"
    partitions = [name.lower() for name in facts.partition_by]
    if partitions != [name.lower() for name in sink.partition_by]:
        there = f"is partitioned by {', '.join(facts.partition_by)}" if partitions else "has no partitions"
        return f"`partition_by` is {', '.join(sink.partition_by) or 'empty'}, but the table {there}"
    if facts.buckets:
        return f"the table has {facts.buckets} buckets, and files of a stream do not keep to them"
    if location is not None and location != facts.location.rstrip("/"):
        return f"`location` is {location}, but the table's is {facts.location}"
    there_types = {field.name.lower(): field.dataType.simpleString() for field in facts.schema.fields}
    row_types = {field.name.lower(): field.dataType.simpleString() for field in file_schema(sink, schema).fields}
    for name, kind in row_types.items():
        if name not in there_types:
            return f"the table has no column {name}; it has {', '.join(facts.schema.names)}"
        if there_types[name] != kind:
            return f"column {name} is {kind} in the rows and {there_types[name]} in the table"
    missing = [name for name in there_types if name not in row_types]
    return f"the rows have no column {', '.join(missing)}, which the table has" if missing else None

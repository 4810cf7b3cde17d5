"""A database's table as a source: new and changed rows, found by an incrementing column and/or a timestamp.

The columns and their types are read once, when the reader is made; the rows come from `database_stream`.
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.sources import DatabaseSource
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, error, no_error
from millstream.pipelines.spark.sources import database_schema
from millstream.pipelines.spark.sources.arrow_rows import PROBLEM
from millstream.pipelines.spark.sources.database_stream import NAME, DatabaseStream, Settings, initial_offset
from millstream.pipelines.spark.sources.plain_rows import origin

STAGE = "source"


class DatabaseReader:
    """See `sources.reader`."""

    can_fail = True

    def __init__(self, source: DatabaseSource, name: str, context: Context) -> None:
        self._name = name
        self._spark = context.spark
        database = parse_database(source.database)
        relation = database_schema.relation_of(database, source.table, source.query)
        self.columns = database_schema.columns_of(context.spark, database, relation, source.place)
        self.settings = Settings(
            url=source.database,
            relation=relation,
            incrementing=self._known(source.incrementing, source),
            timestamp=self._known(source.timestamp, source),
            start=source.start,
            delay=source.delay,
            poll=source.poll,
        )
        self._spark.dataSource.register(DatabaseStream)

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        reader = self._spark.readStream.format(NAME).schema(raw_schema(self.columns))
        reader = reader.option("url", self.settings.to_json())
        return (reader if limit is None else reader.option("limit", str(limit))).load()

    def initial_offset(self) -> str | None:
        return json.dumps(initial_offset(self.settings))

    def raw_batch(self, start: str, end: str) -> DataFrame:
        options = {"url": self.settings.to_json(), "start": start, "end": end}
        return self._spark.read.format(NAME).schema(raw_schema(self.columns)).options(**options).load()

    def rows(self, raw: DataFrame) -> DataFrame:
        columns = [F.col(f"`{name}`") for name in self.columns.names]
        problem = F.when(F.col(PROBLEM).isNotNull(), error(STAGE, "wrong-type", F.col(PROBLEM))).otherwise(no_error())
        return raw.select(*columns, origin(F.lit(self._name), columns), problem.alias(ERROR))

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        return None

    def finished(self, offset: str) -> bool:
        return False

    def _known(self, column: str | None, source: DatabaseSource) -> str | None:
        return None if column is None else database_schema.actual_name(self.columns, column, source.place)


def raw_schema(columns: StructType) -> StructType:
    """The columns as they are read: those of the table, and what did not fit them."""
    return StructType([*columns.fields]).add(PROBLEM, StringType())

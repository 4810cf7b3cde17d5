"""Rows into a table of Cassandra: writing a row twice is the same as once, by its primary key.

There is no ledger and no transaction: a batch that comes again writes the same rows under the same keys. The workers
write (`cassandra_task`); here keyspace and table are made, and looked at, before the first batch. A batch of which a
part was written before a crash is seen in part until it comes again.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise

from cassandra.cluster import Session
from cassandra.metadata import TableMetadata, protect_name
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from millstream.pipelines.description.sinks import CassandraSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks.cassandra_rows import (
    accepts,
    cql_type,
    from_cassandra,
    sent,
    stored_type,
    to_cassandra,
)
from millstream.pipelines.spark.sinks.cassandra_session import PASSING, REQUEST_SECONDS, connect, parse_address, words
from millstream.pipelines.spark.sinks.cassandra_task import OUTCOME, Insert, Select, read_ranges, write_rows
from millstream.pipelines.spark.sinks.patience import Patience
from millstream.pipelines.spark.sinks.refusals import Refusal, mark_of, quoted, refused_rows
from millstream.pipelines.spark.sinks.writer import Batch

FIRST_TOKEN, LAST_TOKEN = -(2**63), 2**63 - 1


class CassandraWriter:
    """One Cassandra sink of one pipeline."""

    def __init__(self, sink: CassandraSink, context: Context, patience: Patience | None = None) -> None:
        self._sink = sink
        self._context = context
        self._patience = patience or Patience()
        self._clustering = [self._ordered(part) for part in sink.clustering]
        self._primary = [*sink.key, *(name for name, _ in self._clustering)]
        self._last_timestamp = 0
        try:
            address = parse_address(sink.cassandra, sink.user, sink.password, sink.consistency)
        except ValueError as error:
            raise self._error(str(error)) from error
        self._address = address._replace(seconds=min(REQUEST_SECONDS, self._patience.seconds))

    def open(self, schema: StructType) -> None:
        absent = [name for name in self._primary if name not in schema.names]
        if absent:
            raise self._error(f"the rows have no column {', '.join(absent)}; they have {', '.join(schema.names)}")
        try:
            table = self._patience.persist(lambda: self._make(schema), lambda error: isinstance(error, PASSING))
        except PipelineError:
            raise
        except PASSING as error:
            raise self._error(f"{words(error)} (tried for {self._patience.seconds:.0f} s)") from error
        except Exception as error:
            raise self._error(words(error)) from error
        names = {name.lower(): column for name, column in table.columns.items()}
        columns = [names[name.lower()] for name in schema.names]
        ttl = f" AND TTL {self._sink.ttl}" if self._sink.ttl else ""
        self._statement = (
            f"INSERT INTO {self._table} ({', '.join(protect_name(column.name) for column in columns)}) "
            f"VALUES ({', '.join('?' * len(columns))}) USING TIMESTAMP ?{ttl}"
        )
        self._converters = tuple(
            to_cassandra(stored_type(field.dataType), column.cql_type)
            for field, column in zip(schema.fields, columns, strict=True)
        )
        self._key = tuple(schema.names.index(name) for name in self._primary)
        self._mark = mark_of(schema)
        self._values = [sent(field).alias(f"c{i}") for i, field in enumerate(schema.fields)]

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        self._last_timestamp = max(time.time_ns() // 1000, self._last_timestamp + 1)
        insert = Insert(
            self._address, self._statement, self._converters, self._key, self._last_timestamp, self._patience.seconds
        )
        given = rows.select(self._mark.alias("mark"), *self._values)
        outcome = given.mapInArrow(partial(write_rows, insert), OUTCOME).collect()
        for row in outcome:
            if row.stop:
                raise self._error(row.message)
        refusals = [Refusal(row.mark, row.error, row.message) for row in outcome]
        return refused_rows(rows, self._mark, refusals, batch.sink)

    def close(self) -> None:
        """Sessions belong to the workers."""

    def _make(self, schema: StructType) -> TableMetadata:
        """Makes keyspace and table if they are missing; the table as it is, if the rows fit."""
        cluster = connect(self._address)
        try:
            session = cluster.connect()
            self._create(session, schema)
            cluster.refresh_table_metadata(self._sink.keyspace, self._sink.table)
            table = cluster.metadata.keyspaces[self._sink.keyspace].tables[self._sink.table]
        finally:
            cluster.shutdown()
        wrong = self._misfit(table, schema)
        if wrong:
            raise self._error(wrong)
        return table

    def _create(self, session: Session, schema: StructType) -> None:
        sink = self._sink
        known = session.cluster.metadata.keyspaces
        if sink.keyspace not in known:
            session.execute(
                f"CREATE KEYSPACE IF NOT EXISTS {protect_name(sink.keyspace)} WITH replication = "
                f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {sink.replication}}}"
            )
        if sink.keyspace in known and sink.table in known[sink.keyspace].tables:
            return
        columns = [
            f"{protect_name(field.name)} {cql_type(field.dataType, frozen=field.name in self._primary)}"
            for field in schema.fields
        ]
        key = ", ".join(map(protect_name, sink.key))
        clustering = "".join(f", {protect_name(name)}" for name, _ in self._clustering)
        order = ", ".join(f"{protect_name(name)} {direction}" for name, direction in self._clustering)
        session.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(columns)}, PRIMARY KEY (({key}){clustering}))"
            + (f" WITH CLUSTERING ORDER BY ({order})" if order else "")
        )

    def _misfit(self, table: TableMetadata, schema: StructType) -> str | None:
        """What is wrong with writing these rows to the table."""
        there = {name.lower(): column for name, column in table.columns.items()}
        missing = [name for name in schema.names if name.lower() not in there]
        if missing:
            return (
                f"the table has no column {', '.join(missing)}; it has {', '.join(table.columns)}. Add it with "
                "ALTER TABLE, or leave it out with the sink's `select`"
            )
        primary = [column.name for column in table.primary_key]
        if [name.lower() for name in self._primary] != [name.lower() for name in primary]:
            key = ", ".join(column.name for column in table.partition_key)
            clustering = ", ".join(column.name for column in table.clustering_key)
            return f"its primary key is (({key}), {clustering}); write `key` and `clustering` accordingly"
        for field in schema.fields:
            kind = there[field.name.lower()].cql_type
            if not accepts(kind, field.dataType):
                return (
                    f"the column {field.name} is {kind} in the table and {field.dataType.simpleString()} in the rows; "
                    "cast it in a step"
                )
        return None

    def _ordered(self, column: str) -> tuple[str, str]:
        """`time desc` taken apart."""
        name, _, order = column.partition(" ")
        order = order.strip().upper() or "ASC"
        if order not in ("ASC", "DESC"):
            raise self._error(f"clustering: {column!r} is no column with an order; write `{name}` or `{name} desc`")
        return name, order

    @property
    def _table(self) -> str:
        return _quoted_table(self._sink)

    def _error(self, what: str) -> PipelineError:
        where = f"table {self._sink.keyspace}.{self._sink.table} of Cassandra at {self._sink.cassandra}"
        return PipelineError(f"{where}: {what}", self._sink.place)


def read_cassandra(sink: CassandraSink, context: Context, schema: StructType) -> DataFrame | None:
    """What the table holds now, read by token ranges in parallel; None if there is no such table."""
    address = parse_address(sink.cassandra, sink.user, sink.password, sink.consistency)
    cluster = connect(address)
    try:
        cluster.connect()
        keyspace = cluster.metadata.keyspaces.get(sink.keyspace)
        table = keyspace.tables.get(sink.table) if keyspace else None
    finally:
        cluster.shutdown()
    if table is None:
        return None
    there = {name.lower(): column.name for name, column in table.columns.items()}
    columns = ", ".join(protect_name(there[name.lower()]) for name in schema.names)
    token = f"token({', '.join(protect_name(column.name) for column in table.partition_key)})"
    stored = StructType([StructField(f.name, stored_type(f.dataType)) for f in schema.fields])
    select = Select(
        address,
        f"SELECT {columns} FROM {_quoted_table(sink)} WHERE {token} > ? AND {token} <= ?",
        tuple(from_cassandra(field.dataType) for field in schema.fields),
        to_arrow_schema(stored, timezone="UTC"),
    )
    parts = context.spark.sparkContext.defaultParallelism
    bounds = [FIRST_TOKEN + i * 2**64 // parts for i in range(parts)] + [LAST_TOKEN]
    ranges = context.spark.createDataFrame(list(pairwise(bounds)), "first bigint, last bigint").repartition(parts)
    found = ranges.mapInArrow(partial(read_ranges, select), stored)
    return found.select(*[_value(field).alias(field.name) for field in schema.fields])


def _value(field: StructField) -> Column:
    """The column as it was before it was sent."""
    column = F.col(quoted(field.name))
    if stored_type(field.dataType) == field.dataType:
        return column
    nested = isinstance(field.dataType, StructType | ArrayType | MapType | VariantType)
    return F.from_json(column, field.dataType.simpleString()) if nested else column.cast(field.dataType)


def _quoted_table(sink: CassandraSink) -> str:
    return f"{protect_name(sink.keyspace)}.{protect_name(sink.table)}"

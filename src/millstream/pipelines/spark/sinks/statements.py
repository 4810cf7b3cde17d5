"""The SQL that a database sink runs, put together once; nothing here talks to a database."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StringType, StructField, StructType

from millstream.pipelines.description.sinks import DatabaseSink
from millstream.pipelines.spark.sinks.dialects import Dialect
from millstream.pipelines.spark.sinks.staging import staged_type
from millstream.pipelines.spark.sinks.table_facts import TableFacts

LEDGER = "millstream_batches"
STAGING = "_millstream_"
ATTEMPT = "VARCHAR(16)"
_TEXT_COLUMNS = ("text", "varchar", "bpchar", "name")
"""Types of PostgreSQL that take text as it is. A cast would cut text that is too long for them."""


def beside(table: str, name: str) -> str:
    """The name of a table of ours in the schema of the user's table."""
    space, _, _ = table.rpartition(".")
    return f"{space}.{name}" if space else name


class Statements:
    """The statements for one sink. `?` stand for values, in the order that each docstring gives."""

    def __init__(self, dialect: Dialect, sink: DatabaseSink, schema: StructType, staging: str) -> None:
        """`staging` is the name of the staging table in the target's schema."""
        self._dialect = dialect
        self._sink = sink
        self._schema = schema
        self._target = dialect.quote_table(sink.table)
        ledger = dialect.quote_table(beside(sink.table, LEDGER))
        table = dialect.quote_table(beside(sink.table, staging))
        self.staging_table = table
        attempt, row, mark, error, message, batch = map(
            dialect.quote, ("attempt", "row", "mark", "error", "message", "batch")
        )
        line = " AND ".join(f"{dialect.quote(name)} = ?" for name in ("pipeline", "sink", "query"))
        self._good = f"{attempt} = ? AND {error} IS NULL"

        self.create_ledger = self._create_ledger(ledger)
        self.find_claim = f"SELECT {batch}, {attempt} FROM {ledger} WHERE {line}"
        """pipeline, sink, query -> batch, attempt"""
        self.enter = f"INSERT INTO {ledger} VALUES (?, ?, ?, -1, '')"
        """pipeline, sink, query"""
        self.claim = f"UPDATE {ledger} SET {batch} = ?, {attempt} = ? WHERE {line} AND {batch} < ?"
        """batch, attempt, pipeline, sink, query, batch"""
        self.extent = f"SELECT COUNT(*), MIN({row}), MAX({row}) FROM {table} WHERE {self._good}"
        """attempt -> number of rows, first, last"""
        self.nth = (
            f"SELECT {row} FROM {table} WHERE {self._good} AND {row} BETWEEN ? AND ? ORDER BY {row} LIMIT 1 OFFSET "
        )
        """attempt, first, last -> row; the offset is put after it"""
        self.refuse = f"UPDATE {table} SET {error} = ?, {message} = ? WHERE {attempt} = ? AND {row} BETWEEN ? AND ?"
        """error, message, attempt, first, last"""
        self.refused = f"SELECT {mark}, {error}, {message} FROM {table} WHERE {attempt} = ? AND {error} IS NOT NULL"
        """attempt -> mark, error, message"""
        self.clear = f"DELETE FROM {table} WHERE NOT ({attempt} = ? AND {error} IS NOT NULL)"
        """attempt"""

    def create_target(self) -> str:
        key = self._sink.key
        columns = [self._column(field) for field in self._schema.fields]
        if key:
            columns.append(f"PRIMARY KEY ({self._names(key)})")
        return f"CREATE TABLE IF NOT EXISTS {self._target} ({', '.join(columns)}){self._dialect.table_suffix}"

    def create_staging(self) -> str:
        q, types = self._dialect.quote, self._dialect.types
        columns = [f"{q('attempt')} {ATTEMPT} NOT NULL"]
        columns += [f"{q(name)} {types['long']} NOT NULL" for name in ("row", "mark")]
        columns += [f"{q(name)} {types['string']}" for name in ("error", "message")]
        for i, field in enumerate(self._schema.fields):
            columns.append(f"c{i} {self._dialect.type_of(staged_type(field.dataType))}")
        columns.append(f"PRIMARY KEY ({self._names(('attempt', 'row'))})")
        return f"CREATE TABLE IF NOT EXISTS {self.staging_table} ({', '.join(columns)}){self._dialect.staging_suffix}"

    def insert(self, facts: TableFacts) -> str:
        """From the staging table into the user's, in order: attempt, first row, last row."""
        columns = [facts.columns[name.lower()] for name in self._schema.names]
        values = []
        for i, (field, column) in enumerate(zip(self._schema.fields, columns, strict=True)):
            text = isinstance(staged_type(field.dataType), StringType)
            cast = text and self._dialect.strict_text and column.type not in _TEXT_COLUMNS
            values.append(f"CAST(c{i} AS {column.type})" if cast else f"c{i}")
        row = self._dialect.quote("row")
        names = self._names([column.name for column in columns])
        into = f"INSERT INTO {self._target} ({names}) SELECT {', '.join(values)} FROM"
        wanted = f"{self._good} AND {row} BETWEEN ? AND ?"
        if not self._sink.key:
            return f"{into} {self.staging_table} WHERE {wanted} ORDER BY {row}"
        key = [self._schema.names.index(name) for name in self._sink.key]
        same = ", ".join(f"c{i}" for i in key)
        newest = f"ROW_NUMBER() OVER (PARTITION BY {same} ORDER BY {row} DESC) AS newest"
        return (
            f"{into} (SELECT s.*, {newest} FROM {self.staging_table} s WHERE {wanted}) t WHERE newest = 1 "
            f"ORDER BY {row} {self._upsert([columns[i].name for i in key], [column.name for column in columns])}"
        )

    def _upsert(self, key: Sequence[str], columns: Sequence[str]) -> str:
        quote = self._dialect.quote
        rest = [name for name in columns if name not in key] or key[:1]  # something must be set, be it to what it is
        sets = ", ".join(self._dialect.upsert_set.format(column=quote(name)) for name in rest)
        return self._dialect.upsert.format(key=self._names(key), sets=sets)

    def _column(self, field: StructField) -> str:
        key = field.name in self._sink.key
        kind = self._sink.types.get(field.name) or self._dialect.type_of(field.dataType, key=key)
        return f"{self._dialect.quote(field.name)} {kind}{' NOT NULL' if key else ''}"

    def _create_ledger(self, ledger: str) -> str:
        q, number = self._dialect.quote, self._dialect.types["long"]
        types = {"pipeline": "VARCHAR(190)", "sink": "VARCHAR(190)", "query": "VARCHAR(64)", "batch": number}
        columns = [f"{q(name)} {kind} NOT NULL" for name, kind in {**types, "attempt": ATTEMPT}.items()]
        columns.append(f"PRIMARY KEY ({self._names(('pipeline', 'sink', 'query'))})")
        return f"CREATE TABLE IF NOT EXISTS {ledger} ({', '.join(columns)}){self._dialect.staging_suffix}"

    def _names(self, names: Sequence[str]) -> str:
        return ", ".join(map(self._dialect.quote, names))

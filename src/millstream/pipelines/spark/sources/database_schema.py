"""The columns of a database's table or query as Spark's types.

Spark knows the types of MariaDB, MySQL and PostgreSQL through JDBC. SQLite has no types to speak of, only what was
written when a table was made: that is read here, with SQLite's own 64-bit numbers, and a column of an expression is
what its first value is.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millstream.pipelines.description.database import Database
from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import dbapi
from millstream.pipelines.spark.rows import HIDDEN
from millstream.pipelines.spark.sinks.dialects import connection_options

_SQLITE_NUMBER = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_SQLITE_TYPES: tuple[tuple[tuple[str, ...], DataType], ...] = (
    (("BOOL",), BooleanType()),
    (("TIMESTAMP", "DATETIME"), TimestampType()),
    (("DATE",), DateType()),
    (("INT",), LongType()),
    (("CHAR", "CLOB", "TEXT", "JSON", "UUID"), StringType()),
    (("BLOB", "BINARY"), BinaryType()),
    (("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"), DoubleType()),
)
"""A word in the declared type -> Spark's type; the first that is found counts."""
_SQLITE_VALUES: dict[str, DataType] = {"integer": LongType(), "real": DoubleType(), "blob": BinaryType()}


def relation_of(database: Database, table: str | None, query: str | None) -> str:
    """What stands after FROM."""
    if query is not None:
        return f"({query.strip().rstrip(';')}) AS millstream_query"
    return dbapi.quoted_table(database.kind, table or "")


def columns_of(spark: SparkSession, database: Database, relation: str, place: Place | None) -> StructType:
    """The columns; PipelineError if the database, the table or the query is not there or not right."""
    try:
        found = _sqlite(database, relation) if database.kind == "sqlite" else _jdbc(spark, database, relation)
    except (PySparkException, Py4JJavaError, sqlite3.Error, OSError) as error:
        raise PipelineError(f"{database.safe_url} cannot be read: {_reason(error)}", place) from error
    taken = [name for name in found.names if name.lower() in HIDDEN]
    if taken:
        raise PipelineError(f"{taken[0]} cannot be a column: Millstream keeps a row's origin and error there", place)
    return StructType([StructField(field.name, field.dataType) for field in found.fields])


def actual_name(columns: StructType, name: str, place: Place | None) -> str:
    """A column's name as the database has it, whatever its case; PipelineError if there is none."""
    for known in (name, *columns.names):
        if known in columns.names and known.lower() == name.lower():
            return known
    raise PipelineError(f"there is no column {name}; there are {', '.join(columns.names)}", place)


def _jdbc(spark: SparkSession, database: Database, relation: str) -> StructType:
    return spark.read.format("jdbc").options(**connection_options(database)).option("dbtable", relation).load().schema


def _sqlite(database: Database, relation: str) -> StructType:
    if not Path(database.name).exists():
        raise FileNotFoundError("there is no such file")
    with dbapi.Session(database) as session, closing(session.cursor()) as cursor:
        # A view of this connection alone: it has the declared types of whatever a query selects.
        cursor.execute(f"CREATE TEMP VIEW millstream_columns AS SELECT * FROM {relation}")
        declared = cursor.execute("PRAGMA table_info(millstream_columns)").fetchall()
        return StructType([StructField(name, _sqlite_type(cursor, name, kind)) for _, name, kind, *_ in declared])


def _sqlite_type(cursor: Any, name: str, declared: str) -> DataType:
    words = declared.upper()
    number = _SQLITE_NUMBER.search(words)
    if number:
        return DecimalType(min(38, int(number[1])), int(number[2] or 0))
    for signs, kind in _SQLITE_TYPES:
        if any(sign in words for sign in signs):
            return kind
    column = dbapi.quoted("sqlite", name)
    cursor.execute(f"SELECT typeof({column}) FROM millstream_columns WHERE {column} IS NOT NULL LIMIT 1")
    row = cursor.fetchone()
    return StringType() if row is None else _SQLITE_VALUES.get(row[0], StringType())


def _reason(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(error if cause is None else cause.getMessage())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)

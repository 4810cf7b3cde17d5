"""Where rows go: one file for each sink, found by the class of its description.

A sink of micro-batches is a `Writer`: it makes its place, and writes one batch after the other, each once. Adding a
sink is a class in `description/sinks.py`, a file here, and a line in each of the tables below.

| sink | a batch is written once because |
|---|---|
| database | its number is in the same transaction as its rows |
| cassandra | a row is the same under its primary key, however often it is written |
| table, files | its files have names made of its number, and a plan says which belong to it |
| topic, exactly-once | its number is in the same transaction as its records |
| topic, at-least-once | it is not: a batch that comes again is written again |
| console | it is not |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import (
    CassandraSink,
    ConsoleSink,
    DatabaseSink,
    FilesSink,
    Sink,
    TableSink,
    TopicSink,
)
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks.cassandra import cassandra_writer, read_cassandra
from millstream.pipelines.spark.sinks.console import ConsoleWriter
from millstream.pipelines.spark.sinks.database import DatabaseWriter
from millstream.pipelines.spark.sinks.database_read import read_database
from millstream.pipelines.spark.sinks.files import FilesWriter, read_files
from millstream.pipelines.spark.sinks.names import sink_name
from millstream.pipelines.spark.sinks.tables import TableWriter, read_table
from millstream.pipelines.spark.sinks.topic import TopicWriter, read_topic
from millstream.pipelines.spark.sinks.writer import Batch, Writer

WRITERS: dict[type[Sink], Callable[[Any, Context], Writer]] = {
    DatabaseSink: DatabaseWriter,
    CassandraSink: cassandra_writer,
    TableSink: TableWriter,
    FilesSink: FilesWriter,
    TopicSink: TopicWriter,
    ConsoleSink: ConsoleWriter,
}
"""Sink -> its writer."""

READ_BACK: dict[type[Sink], Callable[[Any, Context, StructType], DataFrame | None]] = {
    DatabaseSink: read_database,
    CassandraSink: read_cassandra,
    TableSink: read_table,
    FilesSink: read_files,
    TopicSink: read_topic,
}
"""Sink -> what it holds now, the columns of the schema; None if it keeps nothing, or is not there."""

__all__ = ["READ_BACK", "WRITERS", "Batch", "Writer", "sink_name"]

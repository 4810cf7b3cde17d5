"""What happens to a pipeline's outputs when it processes records again, said before it happens.

Sinks are exactly-once within one life of a checkpoint. A reset begins a new life: what a sink has is not looked at, so
whether doing it again doubles anything depends on the sink alone.
"""

from __future__ import annotations

from typing import NamedTuple

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.fields import is_local
from millstream.pipelines.description.sinks import (
    CassandraSink,
    ConsoleSink,
    DatabaseSink,
    FilesSink,
    Sink,
    TableSink,
    TopicSink,
)


class Output(NamedTuple):
    """One sink: what it is, what happens to it when records come again, and how to empty it before."""

    sink: str
    doubles: bool
    """Whether what comes again is there twice then."""
    what: str
    empty: str | None = None


def output_of(sink: Sink) -> Output:
    """What records that come again do to a sink."""
    if isinstance(sink, TopicSink):
        return Output(
            f"topic {sink.topic}",
            True,
            "the records are written again: readers see them twice",
            f"millstream topic truncate {sink.topic} --before all --execute",
        )
    if isinstance(sink, DatabaseSink):
        return _database(sink)
    if isinstance(sink, CassandraSink):
        name = f"{sink.keyspace}.{sink.table}"
        return Output(f"cassandra {name}", False, _overwritten((*sink.key, *sink.clustering)), f"TRUNCATE {name}")
    if isinstance(sink, TableSink):
        empty = f"TRUNCATE TABLE {sink.table}" if sink.location is None else _removal(sink.location)
        return Output(f"table {sink.table}", True, _added("rows"), empty)
    if isinstance(sink, FilesSink):
        return Output(f"files {sink.files}", True, _added("rows"), _removal(sink.files))
    if isinstance(sink, ConsoleSink):
        return Output("console", True, "the rows are printed again")
    return Output(type(sink).__name__, True, "what it does with rows that come again is its own affair")


def _database(sink: DatabaseSink) -> Output:
    where = f"database table {sink.table} ({parse_database(sink.database).safe_url})"
    empty = f"DELETE FROM {sink.table}"
    if sink.key:
        return Output(where, False, _overwritten(sink.key), empty)
    return Output(where, True, _added("rows"), empty)


def _overwritten(key: tuple[str, ...]) -> str:
    columns = ", ".join(column.split()[0] for column in key)
    return f"rows with the same key ({columns}) are overwritten; those whose key does not come again stay as they are"


def _added(what: str) -> str:
    return f"{what} that are there stay, and those processed again are added once more: empty it first"


def _removal(folder: str) -> str:
    if is_local(folder):
        return f"rm -r {folder}"
    return f"hdfs dfs -rm -r {folder}" if folder.startswith("hdfs:") else f"remove everything in {folder}"

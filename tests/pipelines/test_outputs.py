"""What records that come again do to each kind of sink."""

import pytest

from millstream.pipelines.description.sinks import (
    SINKS,
    CassandraSink,
    ConsoleSink,
    DatabaseSink,
    FilesSink,
    Sink,
    TableSink,
    TopicSink,
)
from millstream.pipelines.outputs import output_of

URL = "mariadb://me:secret@db:3306/shop"
CASES: list[tuple[Sink, str, bool, str, str | None]] = [
    (
        TopicSink(topic="out"),
        "topic out",
        True,
        "readers see them twice",
        "millstream topic truncate out --before all --execute",
    ),
    (
        DatabaseSink(database=URL, table="sales"),
        "database table sales (mariadb://me@db:3306/shop)",
        True,
        "added once more: empty it first",
        "DELETE FROM sales",
    ),
    (
        DatabaseSink(database=URL, table="sales", key=["id", "day"]),
        "database table sales (mariadb://me@db:3306/shop)",
        False,
        "rows with the same key (id, day) are overwritten",
        "DELETE FROM sales",
    ),
    (
        CassandraSink(cassandra="db:9042", keyspace="shop", table="sales", key="id", clustering="at desc"),
        "cassandra shop.sales",
        False,
        "rows with the same key (id, at) are overwritten",
        "TRUNCATE shop.sales",
    ),
    (TableSink(table="shop.sales"), "table shop.sales", True, "added once more", "TRUNCATE TABLE shop.sales"),
    (
        TableSink(table="shop.sales", location="hdfs://n/sales"),
        "table shop.sales",
        True,
        "added once more",
        "hdfs dfs -rm -r hdfs://n/sales",
    ),
    (FilesSink(files="/data/out"), "files /data/out", True, "added once more", "rm -r /data/out"),
    (FilesSink(files="s3a://b/o"), "files s3a://b/o", True, "added once more", "remove everything in s3a://b/o"),
    (ConsoleSink(), "console", True, "printed again", None),
]


@pytest.mark.parametrize(("sink", "name", "doubles", "what", "empty"), CASES, ids=lambda value: type(value).__name__)
def test_what_happens(sink: Sink, name: str, doubles: bool, what: str, empty: str | None) -> None:
    output = output_of(sink)
    assert (output.sink, output.doubles, output.empty) == (name, doubles, empty)
    assert what in output.what
    assert "secret" not in str(output)


def test_every_kind_of_sink_is_known() -> None:
    assert {type(sink) for sink, *_ in CASES} == set(SINKS.values())

"""The Cassandra sink on Cassandra."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from millstream.engines.ports import free_ports
from millstream.pipelines.description.sinks import CassandraSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import sinks
from millstream.pipelines.spark.rows import visible_schema, without_hidden
from millstream.pipelines.spark.sinks import READ_BACK
from millstream.pipelines.spark.sinks.cassandra_session import connect, parse_address
from millstream.pipelines.spark.sinks.cassandra_table import CassandraWriter
from millstream.pipelines.spark.sinks.patience import Patience
from millstream.stores import Cassandra
from support.sinks import batch, context_for, counted, errors_in, rows_of, writer_for, written

KEYSPACE = "shop"
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(scope="module")
def session(cassandra: Cassandra) -> Iterator[Session]:
    cluster = connect(parse_address(f"{cassandra.host}:{cassandra.port}", None, None, "ONE"))
    found = cluster.connect()
    found.execute(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {REPLICATION}")
    yield found
    cluster.shutdown()


@pytest.fixture
def sink(session: Session, cassandra: Cassandra) -> Iterator[Callable[..., CassandraSink]]:
    """A sink for a table that is not there, and goes at the end."""

    def described(**options: Any) -> CassandraSink:
        where = {"cassandra": f"{cassandra.host}:{cassandra.port}", "keyspace": KEYSPACE, "table": "t", "key": ("id",)}
        return CassandraSink(**{**where, **options})

    yield described
    session.execute(f"DROP TABLE IF EXISTS {KEYSPACE}.t")


def test_keyspace_and_table_are_made(
    spark: SparkSession, session: Session, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    described = sink(keyspace="Made", key=("shop", "day"), clustering=("at desc", "nr"))
    rows = rows_of(
        spark,
        "shop string, day date, at timestamp, nr int, note string",
        ("a", date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC), 1, None),
        ("a", date(2026, 1, 31), datetime(2026, 1, 31, 13, tzinfo=UTC), 2, "later"),
    )
    try:
        assert written(context_for(spark, described, tmp_path), rows) == [None]
        found = list(session.execute('SELECT nr, note FROM "Made".t'))
        assert [tuple(row) for row in found] == [(2, "later"), (1, None)]
    finally:
        session.execute('DROP KEYSPACE "Made"')


def test_every_type_comes_back_as_it_went(
    spark: SparkSession, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    schema = (
        "id bigint, yes boolean, tiny tinyint, small smallint, whole int, single float, double double, "
        "price decimal(20,4), text string, bytes binary, day date, moment timestamp, wall timestamp_ntz, "
        "tags array<string>, counts map<string, int>, deep map<string, array<int>>, place struct<x: int, y: string>"
    )
    full = (
        2**40, True, 1, 2, 3, 0.5, 0.2, Decimal("12.3000"), "tëxt 🙂", b"\x00\xff", date(2026, 1, 31),
        datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=UTC), datetime(2026, 3, 29, 2, 30),
        ["a", "b"], {"k": 1}, {"k": [1, 2]}, (1, "z"),
    )  # fmt: skip
    rows = rows_of(spark, schema, full, (1, *[None] * (len(full) - 1)))
    described = sink()
    context = context_for(spark, described, tmp_path)
    assert written(context, rows) == [None]
    found = READ_BACK[CassandraSink](described, context, visible_schema(rows))
    assert found is not None
    assert found.schema.simpleString() == visible_schema(rows).simpleString()
    assert sorted(found.collect()) == sorted(without_hidden(rows).collect())


def test_a_batch_again_is_the_same_and_a_later_one_wins(
    spark: SparkSession, session: Session, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    context = context_for(spark, sink(), tmp_path)
    writer = writer_for(context)
    first = rows_of(spark, "id int, n int", (1, 10), (2, 20), (1, 11))
    writer.open(visible_schema(first))
    for _ in range(2):
        assert writer.write(first, batch(context, 0)) is None
    assert sorted(tuple(row) for row in session.execute(f"SELECT id, n FROM {KEYSPACE}.t")) == [(1, 11), (2, 20)]
    writer.write(rows_of(spark, "id int, n int", (2, None), (3, 30)), batch(context, 1))
    found = {row.id: row.n for row in session.execute(f"SELECT id, n FROM {KEYSPACE}.t")}
    assert found == {1: 11, 2: None, 3: 30}


def test_bad_rows_are_left_out_and_handed_back(
    spark: SparkSession, session: Session, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    session.execute(f"CREATE TABLE {KEYSPACE}.t (id int PRIMARY KEY, n smallint, who uuid)")
    who = "123e4567-e89b-12d3-a456-426614174000"
    rows = rows_of(
        spark,
        "id bigint, n int, who string",
        (1, 1, who), (2**40, 1, None), (2, 70_000, None), (3, 1, "nobody"), (None, 4, None), (5, 5, None),
        (5, 70_000, None),
    )  # fmt: skip
    (refused,) = written(context_for(spark, sink(), tmp_path), rows)
    found = errors_in(refused)
    assert sorted(
        (row.id, row.n, row.who and str(row.who)) for row in session.execute(f"SELECT * FROM {KEYSPACE}.t")
    ) == [
        (1, 1, who),
        (5, 5, None),
    ]
    assert sorted(row["_origin"]["offset"] for row in found) == [1, 2, 3, 4, 6]
    assert {row["_error"]["stage"] for row in found} == {"sink cassandra-shop.t"}
    assert {row["id"]: row["_error"]["error"] for row in found}[None] == "InvalidRequest"
    assert "badly formed hexadecimal UUID string" in {row["id"]: row["_error"]["message"] for row in found}[3]


def test_a_row_that_is_too_large_is_refused(
    spark: SparkSession, session: Session, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    rows = counted(spark, 2, "id", "if(id = 0, repeat('x', 16 * 1024 * 1024), 'short') AS text")
    (refused,) = written(context_for(spark, sink(), tmp_path), rows)
    assert refused is not None
    assert [row.id for row in refused.select("id").collect()] == [0]
    assert [row.id for row in session.execute(f"SELECT id FROM {KEYSPACE}.t")] == [1]


def test_rows_live_as_long_as_the_sink_says(
    spark: SparkSession, session: Session, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    written(context_for(spark, sink(ttl=1000), tmp_path), counted(spark, 1, "id", "'x' AS text"))
    (row,) = session.execute(f"SELECT ttl(text) AS left FROM {KEYSPACE}.t")
    assert 900 < row.left <= 1000


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("id bigint PRIMARY KEY", {}, "the table has no column name; it has id"),
        ("id int PRIMARY KEY, name int", {}, "the column name is int in the table and string in the rows"),
        ("id bigint, name text, PRIMARY KEY (id, name)", {}, r"its primary key is \(\(id\), name\)"),
        (None, {"key": ("nr",)}, "the rows have no column nr; they have id, name"),
        (None, {"clustering": ("name upwards",)}, "write `name` or `name desc`"),
        (None, {"consistency": "MOST"}, "there is no level MOST"),
        (None, {"cassandra": "localhost:many"}, "'localhost:many' is not an address"),
    ],
)
def test_what_does_not_fit_is_said_before_the_first_batch(
    spark: SparkSession,
    session: Session,
    sink: Callable[..., CassandraSink],
    tmp_path: Path,
    table: str | None,
    options: dict[str, Any],
    message: str,
) -> None:
    if table:
        session.execute(f"CREATE TABLE {KEYSPACE}.t ({table})")
    context = context_for(spark, sink(**options), tmp_path)
    with pytest.raises(PipelineError, match=message):
        writer_for(context).open(visible_schema(counted(spark, 1, "id", "'x' AS name")))


def test_a_store_that_stays_away_is_a_clear_error(
    spark: SparkSession, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    described = sink(cassandra=f"127.0.0.1:{free_ports(1)[0]}")
    writer = CassandraWriter(described, context_for(spark, described, tmp_path), Patience(seconds=0.2))
    with pytest.raises(PipelineError, match=r"table shop\.t of Cassandra at 127\.0\.0\.1.*tried for"):
        writer.open(visible_schema(counted(spark, 1, "id")))


def test_a_store_that_goes_away_between_batches_is_a_clear_error(
    spark: SparkSession, cassandra: Cassandra, sink: Callable[..., CassandraSink], tmp_path: Path
) -> None:
    """And the batch is written when it is back."""
    described = sink()
    context = context_for(spark, described, tmp_path)
    rows = counted(spark, 3, "id")
    impatient = CassandraWriter(described, context, Patience(seconds=0.5))
    impatient.open(visible_schema(rows))
    cassandra.pause()
    try:
        with pytest.raises(PipelineError, match=r"tried for"):
            impatient.write(rows, batch(context, 0))
    finally:
        cassandra.resume()
    patient = writer_for(context)
    patient.open(visible_schema(rows))
    assert patient.write(rows, batch(context, 0)) is None
    found = READ_BACK[CassandraSink](described, context, visible_schema(rows))
    assert found is not None
    assert sorted(row.id for row in found.collect()) == [0, 1, 2]


def test_without_the_driver_it_says_what_to_install(spark: SparkSession, tmp_path: Path) -> None:
    described = CassandraSink(cassandra="127.0.0.1:9042", keyspace="shop", table="t", key=("id",))
    ours = [name for name in sys.modules if ".sinks.cassandra_" in name]
    with (
        mock.patch.dict(sys.modules, {"cassandra": None, "cassandra.cluster": None}),
        mock.patch.object(sinks, "cassandra_table", create=True),
    ):
        del sinks.cassandra_table  # a submodule, once it is loaded
        for name in ours:
            del sys.modules[name]
        with pytest.raises(PipelineError, match=r"pip install 'millstream\[cassandra\]'"):
            writer_for(context_for(spark, described, tmp_path))

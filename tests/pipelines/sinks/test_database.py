"""The database sink on SQLite, MariaDB and PostgreSQL."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession

from millstream.engines.ports import free_ports
from millstream.pipelines.description.sinks import DatabaseSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import visible_schema, without_hidden
from millstream.pipelines.spark.sinks import READ_BACK
from millstream.pipelines.spark.sinks.database import DatabaseWriter
from millstream.pipelines.spark.sinks.dialects import DIALECTS, connection_options
from millstream.pipelines.spark.sinks.jdbc import Jdbc
from millstream.pipelines.spark.sinks.patience import Patience
from millstream.pipelines.spark.sinks.statements import STAGING
from millstream.pipelines.spark.sinks.table_facts import tables
from millstream.stores import PostgreSQL
from support.databases import SqlDatabase
from support.sinks import Crash, batch, context_for, counted, crash_at, errors_in, rows_of, writer_for, written

STEPS = ("execute", "_commit", "query")
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


def test_the_table_is_made_and_batches_are_appended(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    context = context_for(spark, DatabaseSink(database=database.url, table="orders"), tmp_path)
    first = rows_of(spark, "id bigint, name string", (1, "one"), (2, None))
    second = rows_of(spark, "id bigint, name string", (2, "zwei"))
    assert written(context, first, second) == [None, None]
    assert sorted(database.run("SELECT id, name FROM orders"), key=str) == [(1, "one"), (2, "zwei"), (2, None)]
    assert database.run("SELECT pipeline, sink, batch FROM millstream_batches") == [("orders", "database-orders", 1)]


def test_every_type_comes_back_as_it_went(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    schema = (
        "yes boolean, tiny tinyint, small smallint, whole int, big bigint, single float, double double, "
        "price decimal(12,2), huge decimal(38,10), text string, bytes binary, day date, moment timestamp, "
        "wall timestamp_ntz, tags array<string>, place struct<x: int, y: string>, counts map<string, int>"
    )
    full = (
        True, 1, 2, 3, 2**40, 0.1, 0.2, Decimal("12.30"),
        Decimal("12345678901234567890.0123456789"), "tëxt 🙂 'quoted'", b"\x00\xff", date(2026, 1, 31),
        NOON, datetime(2026, 3, 29, 2, 30), ["a", "b"], (1, "z"), {"k": 1},
    )  # fmt: skip
    rows = rows_of(spark, schema, full, (None,) * len(full))
    sink = DatabaseSink(database=database.url, table="types")
    context = context_for(spark, sink, tmp_path)
    assert written(context, rows) == [None]
    found = READ_BACK[DatabaseSink](sink, context, visible_schema(rows))
    assert found is not None
    assert found.schema.simpleString() == visible_schema(rows).simpleString()
    assert sorted(found.collect(), key=str) == sorted(without_hidden(rows).collect(), key=str)


def test_the_same_batch_again_is_written_once(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    context = context_for(spark, DatabaseSink(database=database.url, table="orders"), tmp_path)
    rows = rows_of(spark, "id bigint", (1,), (2,))
    for _ in range(2):  # a new process each time
        writer = writer_for(context)
        writer.open(visible_schema(rows))
        for _ in range(2):
            assert writer.write(rows, batch(context, 5)) is None
        writer.close()
    assert sorted(database.run("SELECT id FROM orders")) == [(1,), (2,)]
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    writer.write(rows, batch(context, 5, query="another checkpoint"))
    assert len(database.run("SELECT id FROM orders")) == 4


def test_rows_replace_one_another_by_key(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    sink = DatabaseSink(database=database.url, table="stock", key=("shop", "item"))
    context = context_for(spark, sink, tmp_path)
    schema = "shop string, item int, n int"
    first = rows_of(spark, schema, ("a", 1, 10), ("a", 2, 20), ("a", 1, 11), ("A", 1, 99))
    second = rows_of(spark, schema, ("a", 2, None), ("b", 1, 30))
    assert written(context, first, second) == [None, None]
    expected = {("a", 1, 11), ("A", 1, 99), ("a", 2, None), ("b", 1, 30)}
    if database.parts.kind == "mysql":  # to which `a` and `A` are the same, and the later row wins
        expected = {("a", 1, 99), ("a", 2, None), ("b", 1, 30)}
    assert set(database.run("SELECT shop, item, n FROM stock")) == expected


def test_a_key_alone_is_a_row(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    context = context_for(spark, DatabaseSink(database=database.url, table="seen", key=("id",)), tmp_path)
    rows = rows_of(spark, "id string", ("x",), ("x",), ("y",))
    assert written(context, rows, rows) == [None, None]
    assert sorted(database.run("SELECT id FROM seen")) == [("x",), ("y",)]


def test_bad_rows_are_left_out_and_handed_back(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    strict = " STRICT" if database.parts.kind == "sqlite" else ""
    text = "TEXT CHECK (length(name) <= 5)" if strict else "VARCHAR(5)"
    database.run(f"CREATE TABLE people (id INT NOT NULL, name {text}, age INT CHECK (age >= 0)){strict}")
    context = context_for(spark, DatabaseSink(database=database.url, table="people"), tmp_path)
    good = [(i, "ok", i) for i in range(40)]
    bad = [(100, "too long", 1), (None, "null", 1), (101, "minus", -1), (102, "neg", -2), (102, "neg", -2)]
    rows = rows_of(spark, "id bigint, name string, age int", *good[:20], *bad, *good[20:])
    (refused,) = written(context, rows)
    found = errors_in(refused)
    assert sorted(database.run("SELECT id, name, age FROM people")) == good
    assert {(row["id"], row["name"], row["age"]) for row in found} == set(bad)
    assert len(found) == len(bad)
    assert {row["_error"]["stage"] for row in found} == {"sink database-people"}
    assert {row["_origin"]["offset"] for row in found} == {20, 21, 22, 23, 24}
    too_long = next(row["_error"] for row in found if row["id"] == 100)
    assert too_long["error"] == {"sqlite": "SQLITE_CONSTRAINT_CHECK"}.get(database.parts.kind, "22001"), too_long
    assert too_long["message"]
    again = written(context, rows)  # the process died before the refused rows were safe
    assert sorted(errors_in(again[0]), key=str) == sorted(found, key=str)
    assert len(database.run("SELECT id FROM people")) == len(good)


def test_of_rows_with_one_key_the_last_good_one_wins(
    spark: SparkSession, database: SqlDatabase, tmp_path: Path
) -> None:
    database.run("CREATE TABLE best (id INT PRIMARY KEY, n INT CHECK (n < 100))")
    context = context_for(spark, DatabaseSink(database=database.url, table="best", key=("id",)), tmp_path)
    rows = rows_of(spark, "id int, n int", (1, 1), (1, 2), (1, 100), (2, 5), (None, 6))
    (refused,) = written(context, rows)
    assert sorted(database.run("SELECT id, n FROM best")) == [(1, 2), (2, 5)]
    assert {(row["id"], row["n"]) for row in errors_in(refused)} == {(1, 100), (None, 6)}


def test_values_that_no_column_can_hold_are_refused(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    context = context_for(spark, DatabaseSink(database=database.url, table="odd"), tmp_path)
    rows = counted(
        spark,
        4,
        "id",
        "if(id = 1, double('nan'), 0.5D) AS x",
        "if(id = 2, concat('nul ', char(0)), 'text') AS s",
        "if(id = 3, timestamp'+12026-01-01 00:00:00', timestamp'2026-01-01 00:00:00') AS t",
    )
    (refused,) = written(context, rows)
    assert refused is not None
    found = {row.id: row.message for row in refused.selectExpr("id", "_error.message").collect()}
    assert set(found) == {2, 3} if database.parts.kind == "postgresql" else {1, 3}
    assert found[3] == "t: not in the years 1 to 9999"
    assert sorted(i for (i,) in database.run("SELECT id FROM odd")) == sorted({0, 1, 2, 3} - set(found))


def test_crashes_at_every_moment_neither_lose_nor_double(
    spark: SparkSession, database: SqlDatabase, tmp_path: Path
) -> None:
    """One batch that the process never survives, a little further each time."""
    context = context_for(spark, DatabaseSink(database=database.url, table="orders"), tmp_path)
    rows = counted(spark, 3, "id")
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    for moment in range(100):
        with crash_at(moment, Jdbc, *STEPS) as crashed, suppress(Crash):
            writer.write(rows, batch(context, 0))
        writer.close()  # as the end of a process does
        assert database.run("SELECT COUNT(*) FROM orders")[0] in [(0,), (3,)]
        if not crashed():
            break
    assert 10 < moment < 99
    assert database.run("SELECT id FROM orders") == [(0,), (1,), (2,)]


def test_crashes_while_bad_rows_are_sought(spark: SparkSession, tmp_path: Path) -> None:
    database = SqlDatabase(f"sqlite:///{tmp_path}/test.db")
    database.run("CREATE TABLE orders (id INT CHECK (id <> 2))")
    context = context_for(spark, DatabaseSink(database=database.url, table="orders"), tmp_path)
    rows = counted(spark, 4, "id")
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    refused = None
    for moment in range(100):
        with crash_at(moment, Jdbc, *STEPS) as crashed, suppress(Crash):
            refused = writer.write(rows, batch(context, 0))
        writer.close()
        if not crashed():
            break
    assert 20 < moment < 99
    assert database.run("SELECT id FROM orders") == [(0,), (1,), (3,)]
    assert [row["id"] for row in errors_in(refused)] == [2]


def test_two_processes_with_the_same_batch_write_it_once(
    spark: SparkSession, database: SqlDatabase, tmp_path: Path
) -> None:
    sink = DatabaseSink(database=database.url, table="orders")
    context = context_for(spark, sink, tmp_path)
    rows = counted(spark, 3, "id")
    slow, quick = DatabaseWriter(sink, context), DatabaseWriter(sink, context)
    slow.open(visible_schema(rows))
    quick.open(visible_schema(rows))
    stage = slow._stage

    def overtaken(staged: DataFrame, attempt: str) -> None:
        stage(staged, attempt)
        quick.write(rows, batch(context, 0))

    with mock.patch.object(slow, "_stage", overtaken):
        slow.write(rows, batch(context, 0))
    assert database.run("SELECT id FROM orders") == [(0,), (1,), (2,)]


def test_a_database_that_restarts_is_waited_for(
    spark: SparkSession, postgresql: PostgreSQL, database_of: Callable[[str], SqlDatabase], tmp_path: Path
) -> None:
    database = database_of("postgresql")
    sink = DatabaseSink(database=database.url, table="orders")
    context = context_for(spark, sink, tmp_path)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            postgresql.start()

    writer = DatabaseWriter(sink, context, Patience(sleep=pause))
    rows = counted(spark, 3, "id")
    writer.open(visible_schema(rows))
    postgresql.kill()
    assert writer.write(rows, batch(context, 0)) is None
    assert len(pauses) >= 2
    assert database.run("SELECT id FROM orders") == [(0,), (1,), (2,)]


def test_a_database_that_stays_away_is_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    nobody = free_ports(1)[0]
    sink = DatabaseSink(database=f"postgresql://user:secret@127.0.0.1:{nobody}/shop", table="orders")
    writer = DatabaseWriter(sink, context_for(spark, sink, tmp_path), Patience(seconds=0.2))
    with pytest.raises(
        PipelineError, match=r"table orders of postgresql://user@127\.0\.0\.1.*refused.*tried for"
    ) as raised:
        writer.open(visible_schema(counted(spark, 1, "id")))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("CREATE TABLE t (id BIGINT)", {}, "the table has no column name; it has id"),
        ("CREATE TABLE t (id BIGINT, name VARCHAR(9), n INT NOT NULL)", {}, "column n must have a value"),
        ("CREATE TABLE t (id BIGINT, name VARCHAR(9))", {"key": ["id"]}, r"unique index on exactly \(id\)"),
        (None, {"create": False}, "there is no such table, and `create` is false"),
        (None, {"key": ["nr"]}, "key: the rows have no column nr; they have id, name"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_before_the_first_batch(
    spark: SparkSession, database: SqlDatabase, tmp_path: Path, table: str | None, options: dict[str, Any], message: str
) -> None:
    if table:
        database.run(table)
    context = context_for(spark, DatabaseSink(database=database.url, table="t", **options), tmp_path)
    with pytest.raises(PipelineError, match=message):
        writer_for(context).open(visible_schema(counted(spark, 1, "id", "'x' AS name")))


def test_columns_get_the_types_that_the_sink_says(
    spark: SparkSession, database_of: Callable[[str], SqlDatabase], tmp_path: Path
) -> None:
    database = database_of("mariadb")
    rows = counted(spark, 1, "id", "'x' AS name")
    types = {"name": "VARCHAR(7) DEFAULT 'none'"}
    written(context_for(spark, DatabaseSink(database=database.url, table="t", types=types), tmp_path), rows)
    ((_, made),) = database.run("SHOW CREATE TABLE t")
    assert "`name` varchar(7) DEFAULT 'none'" in made
    wrong = DatabaseSink(database=database.url, table="u", types={"name": "NO SUCH TYPE"})
    with pytest.raises(PipelineError, match="table u of"):
        written(context_for(spark, wrong, tmp_path), rows)


def test_existing_tables_keep_their_types(
    spark: SparkSession, database_of: Callable[[str], SqlDatabase], tmp_path: Path
) -> None:
    database = database_of("postgresql")
    database.run("CREATE TABLE events (at timestamptz, day date, who uuid, what jsonb, note varchar(3))")
    context = context_for(spark, DatabaseSink(database=database.url, table="events"), tmp_path)
    who = "123e4567-e89b-12d3-a456-426614174000"
    rows = counted(
        spark,
        2,
        "timestamp'2026-07-01 00:00:00+02:00' AS at",
        "date'2026-01-31' AS day",
        f"if(id = 0, '{who}', 'nobody') AS who",
        "named_struct('a', id) AS what",
        "'abc' AS note",
    )
    (refused,) = written(context, rows)
    assert [row["who"] for row in errors_in(refused)] == ["nobody"]
    ((at, day, found, what, note),) = database.run("SELECT * FROM events")
    assert at == datetime(2026, 6, 30, 22, tzinfo=UTC)
    assert (day, str(found), what, note) == (date(2026, 1, 31), who, {"a": 0}, "abc")


def test_staging_tables_of_former_columns_go(spark: SparkSession, database: SqlDatabase, tmp_path: Path) -> None:
    context = context_for(spark, DatabaseSink(database=database.url, table="orders"), tmp_path)
    written(context, counted(spark, 1, "id", "'x' AS name"))
    jdbc = Jdbc(spark, connection_options(database.parts))
    before = tables(jdbc, DIALECTS[database.parts.kind], "orders", STAGING)
    written(context, counted(spark, 1, "id"))
    after = tables(jdbc, DIALECTS[database.parts.kind], "orders", STAGING)
    jdbc.close()
    assert (len(before), len(after)) == (1, 1)
    assert before != after

"""The table sink, in a session without Hive: what the catalogue says, and what the files hold."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.sinks import TableSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import visible_schema, without_hidden
from millstream.pipelines.spark.sinks import READ_BACK
from millstream.pipelines.spark.sinks.catalog import CatalogTable
from millstream.pipelines.spark.sinks.folder import Folder
from support.sinks import Crash, batch, context_for, counted, crash_at, rows_of, writer_for, written

DATABASE = "the_shop"
TABLE = f"{DATABASE}.sales"
NOON = datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC)


@pytest.fixture(autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    """The database is gone before and after."""
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    yield
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")


def partitions(spark: SparkSession) -> list[str]:
    return sorted(row.partition for row in spark.sql(f"SHOW PARTITIONS {TABLE}").collect())


def ids(spark: SparkSession) -> list[int]:
    return sorted(row.id for row in spark.table(TABLE).select("id").collect())


def test_database_table_and_partitions_are_made(spark: SparkSession, tmp_path: Path) -> None:
    sink = TableSink(table=TABLE, partition_by=("day", "shop", "at"))
    context = context_for(spark, sink, tmp_path)
    day = date(2026, 1, 31)
    schema = "day date, id bigint, place struct<`x y`: int>, shop string, at timestamp"
    first = rows_of(spark, schema, (day, 1, None, "it's a/b: \\100%", NOON), (None, 2, (1,), None, None))
    second = rows_of(spark, schema, (day, 3, (2,), "it's a/b: \\100%", NOON), (day, 4, None, "b", NOON))
    assert READ_BACK[TableSink](sink, context, visible_schema(first)) is None
    assert written(context, first, second) == [None, None]
    null = "__HIVE_DEFAULT_PARTITION__"
    assert partitions(spark) == [
        "day=2026-01-31/shop=b/at=2026-01-31 12%3A00%3A00.5",
        "day=2026-01-31/shop=it%27s a%2Fb%3A %5C100%25/at=2026-01-31 12%3A00%3A00.5",
        f"day={null}/shop={null}/at={null}",
    ]
    found = READ_BACK[TableSink](sink, context, visible_schema(first))
    assert found is not None
    assert found.schema.simpleString() == visible_schema(first).simpleString()
    expected = without_hidden(first.union(second)).collect()
    assert sorted(found.collect(), key=str) == sorted(expected, key=str)
    assert spark.sql(f"SELECT id FROM {TABLE} WHERE day IS NULL").collect() == [(2,)]


@pytest.mark.parametrize("kind", ["orc", "json", "csv", "avro"])
def test_other_formats_with_their_options(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    place = tmp_path / "la'ke"
    options = {"compression": "deflate", "sep": ";"} if kind != "orc" else {}
    sink = TableSink(table=TABLE, location=str(place), format=kind, options=options)
    context = context_for(spark, sink, tmp_path)
    rows = rows_of(spark, "small smallint, text string, at timestamp", (1, ' a;\n"b" ', NOON), (None, None, None))
    written(context, rows)
    assert [path.suffixes[-1] for path in place.glob("part-*")] == [
        ".deflate" if kind in ("json", "csv") else f".{kind}"
    ]
    found = READ_BACK[TableSink](sink, context, visible_schema(rows))
    assert found is not None
    assert sorted(found.collect(), key=str) == sorted(without_hidden(rows).collect(), key=str)


def test_a_table_of_the_current_database(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    with mock.patch.object(type(spark.catalog), "currentDatabase", return_value=DATABASE):
        written(context_for(spark, TableSink(table="sales"), tmp_path), counted(spark, 3, "id"))
    assert ids(spark) == [0, 1, 2]


def test_a_table_made_anew_over_its_files_has_them(spark: SparkSession, tmp_path: Path) -> None:
    """As after a restart, where the session has no Hive."""
    context = context_for(spark, TableSink(table=TABLE, partition_by=("part",)), tmp_path)
    rows = counted(spark, 4, "id", "id % 2 AS part")
    written(context, rows)
    spark.sql(f"DROP TABLE {TABLE}")
    writer = writer_for(context)
    writer.open(visible_schema(rows))
    assert ids(spark) == [0, 1, 2, 3]
    writer.write(counted(spark, 2, "id", "7L AS part"), batch(context, 1))
    assert partitions(spark) == ["part=0", "part=1", "part=7"]
    assert ids(spark) == [0, 0, 1, 1, 2, 3]


def test_a_table_that_is_there_keeps_its_order_and_its_spelling(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.sql(f"CREATE TABLE {TABLE} (name STRING, ID BIGINT) USING csv")
    context = context_for(spark, TableSink(table=TABLE, format="csv"), tmp_path)
    written(context, counted(spark, 1, "id", "'n' AS name"))
    assert [tuple(row) for row in spark.table(TABLE).collect()] == [("n", 0)]


def test_killed_at_every_moment_it_neither_loses_nor_doubles(spark: SparkSession, tmp_path: Path) -> None:
    """One batch that the process does not survive, each time a little further on."""
    context = context_for(spark, TableSink(table=TABLE, partition_by=("part",)), tmp_path)
    rows = counted(spark, 4, "id", "id % 2 AS part")
    for target, steps in ((Folder, ("write", "move")), (CatalogTable, ("add_partitions", "refresh"))):
        for moment in range(100):
            writer = writer_for(context)
            writer.open(visible_schema(rows))
            with crash_at(moment, target, *steps) as crashed, suppress(Crash):
                writer.write(rows, batch(context, 0 if target is Folder else 1))
            if not crashed():
                break
        assert 3 < moment < 99
    assert partitions(spark) == ["part=0", "part=1"]
    assert ids(spark) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_partitions_that_a_crash_kept_from_the_catalogue_are_entered(spark: SparkSession, tmp_path: Path) -> None:
    context = context_for(spark, TableSink(table=TABLE, partition_by=("part",)), tmp_path)
    rows = counted(spark, 4, "id", "id % 2 AS part")
    with crash_at(0, CatalogTable, "add_partitions"), pytest.raises(Crash):
        written(context, rows)
    assert partitions(spark) == []
    written(context, rows)
    assert partitions(spark) == ["part=0", "part=1"]
    assert ids(spark) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("made", "options", "message"),
    [
        ("(id BIGINT) USING parquet", {}, "the table has no column name; it has id"),
        ("(id INT, name STRING) USING parquet", {}, "column id is bigint in the rows and int in the table"),
        ("(id BIGINT, name STRING, n INT) USING parquet", {}, "the rows have no column n, which the table has"),
        ("(id BIGINT, name STRING) USING parquet", {"format": "orc"}, "`format` is orc, but the table is parquet"),
        (
            "(id BIGINT, name STRING) USING parquet",
            {"partition_by": ["name"]},
            "`partition_by` is name, but the table has no partitions",
        ),
        (
            "(id BIGINT, name STRING) USING parquet PARTITIONED BY (name)",
            {},
            "`partition_by` is empty, but the table is partitioned by name",
        ),
        (
            "(id BIGINT, name STRING) USING parquet CLUSTERED BY (id) INTO 4 BUCKETS",
            {},
            "the table has 4 buckets",
        ),
        ("(id BIGINT, name STRING) USING parquet", {"location": "/elsewhere"}, "is file:/elsewhere, but the"),
        ("(id BIGINT, name STRING) USING parquet", {"table": "a.b.c"}, "write `table`, or `database.table`"),
        ("(id BIGINT, name STRING) USING parquet", {"partition_by": ["no"]}, "the rows have no column no"),
        (None, {}, "but the table is view"),
        (None, {"table": f"{DATABASE}.other", "location": "nosuch://x/y"}, 'No FileSystem for scheme "nosuch"'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_its_place(
    spark: SparkSession, tmp_path: Path, made: str | None, options: dict[str, Any], message: str
) -> None:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.sql(f"CREATE TABLE {TABLE} {made}" if made else f"CREATE VIEW {TABLE} AS SELECT 1L AS id, 'x' AS name")
    sink = TableSink(**{"table": TABLE, **options})
    with pytest.raises(PipelineError, match=message) as error:
        writer_for(context_for(spark, sink, tmp_path)).open(visible_schema(counted(spark, 1, "id", "'x' AS name")))
    assert error.value.place == sink.place

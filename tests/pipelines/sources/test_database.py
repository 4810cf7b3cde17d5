"""A database as a source: new rows, changed rows, restarts in mid-table, types, and what is refused."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.datasource import ReadMaxRows

from millstream.pipelines.description.sources import DatabaseSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import visible
from millstream.pipelines.spark.sources import database_stream
from millstream.pipelines.spark.sources.database import DatabaseReader, raw_schema
from millstream.pipelines.spark.sources.database_stream import DatabaseStreamReader
from millstream.stores import PostgreSQL
from support.cluster import eventually, unique
from support.stores import running

Read = Callable[[DataFrame], list[Row]]


class Store:
    """A database with one table of its own."""

    def __init__(self, kind: str, url: str, connection: Any) -> None:
        self.kind = kind
        self.url = url
        self.table = unique("rows").replace("-", "_")
        self._connection = connection

    def execute(self, sql: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        """`TABLE` stands for the table, `?` for a value."""
        sql = sql.replace("TABLE_", self.table)
        with closing(self._connection.cursor()) as cursor:
            if rows is None:
                cursor.execute(sql)
            else:
                cursor.executemany(sql if self.kind == "sqlite" else sql.replace("?", "%s"), rows)
        self._connection.commit()


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    kind = request.param
    connection: Any
    if kind == "sqlite":
        file = tmp_path / "shop.db"
        connection, url = sqlite3.connect(file), f"sqlite:///{file}"
    else:
        server = request.getfixturevalue(kind)
        url = server.url
        place = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        if kind == "mariadb":
            connection = pymysql.connect(**place, database=server.database)
        else:
            connection = psycopg.connect(**place, dbname=server.database)
    with closing(connection):
        yield Store(kind, url, connection)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        yield Store("sqlite", f"sqlite:///{file}", connection)


def reader(context: Context, store: Store, **fields: Any) -> DatabaseReader:
    if "query" not in fields:
        fields = {"table": store.table, **fields}
    return DatabaseReader(DatabaseSource(database=store.url, **fields), "shop", context)


def values(found: list[Row], column: str = "id") -> list[Any]:
    return [row[column] for row in found]


def read_rows(read: Read, source: DatabaseReader, limit: int | None = None) -> list[Row]:
    return read(source.rows(source.raw_stream(limit)))


class Follower:
    """A query without Spark: keeps the offset, as JSON, and reads what is new."""

    def __init__(self, source: DatabaseReader) -> None:
        self._source = source
        self._offset = source.initial_offset() or ""

    def rows(self, limit: int = 1000, *, all_of_now: bool = False) -> list[dict[str, Any]]:
        """The rows of the next micro-batch, by a process that knows nothing but the offset."""
        schema = raw_schema(self._source.columns)
        stream = DatabaseStreamReader(self._source.settings, schema, limit)
        try:
            if all_of_now:
                stream.prepareForTriggerAvailableNow()
            start = json.loads(self._offset)
            end = stream.latestOffset(start, ReadMaxRows(limit))
            self._offset = json.dumps(end)
            parts = stream.partitions(start, end)
            return [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]
        finally:
            stream.stop()

    def ids(self, limit: int = 1000, *, all_of_now: bool = False) -> list[Any]:
        return [row["id"] for row in self.rows(limit, all_of_now=all_of_now)]


def test_new_rows_by_an_incrementing_column_over_restarts(context: Context, store: Store, read: Read) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", [(number, f"n{number}") for number in range(1, 8)])
    source = reader(context, store, incrementing="id")
    rows = read_rows(read, source, 3)
    assert values(rows) == [1, 2, 3, 4, 5, 6, 7]
    origin = rows[0]["_origin"]
    assert (origin["topic"], json.loads(origin["value"]), rows[0]["_error"]) == ("shop", {"id": 1, "name": "n1"}, None)
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", [(9, "n9")])
    store.execute("UPDATE TABLE_ SET name = 'changed' WHERE id = 1")
    assert values(read_rows(read, reader(context, store, incrementing="ID"))) == [9]


def test_new_and_changed_rows_by_a_timestamp(context: Context, store: Store) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER PRIMARY KEY, at TIMESTAMP NULL)")
    rows = [(1, "2026-01-01 00:00:00"), (2, "2026-01-01 00:00:01"), (3, "2026-01-01 00:00:01"), (4, None)]
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", rows)
    follower = Follower(reader(context, store, timestamp="at"))
    # A micro-batch never ends between two rows of the same time, whatever its limit.
    assert sorted(follower.ids(2)) == [1, 2, 3]
    assert follower.ids() == []
    store.execute("UPDATE TABLE_ SET at = '2026-01-01 00:00:02' WHERE id = 1")
    assert follower.ids() == [1]
    store.execute("UPDATE TABLE_ SET at = CURRENT_TIMESTAMP WHERE id = 2")
    assert follower.ids(all_of_now=True) == [2]


def test_both_columns_tell_rows_of_the_same_time_apart(context: Context, store: Store) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP NULL)")
    times = ["2026-01-01 00:00:00", "2026-01-01 00:00:01"]
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", [(number, times[number // 4]) for number in range(8)])
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", [(None, times[0]), (9, None)])
    follower = Follower(reader(context, store, timestamp="at", incrementing="id"))
    assert [follower.ids(3) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7], []]


def test_only_rows_after_the_start(context: Context, store: Store) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP NULL)")
    rows = [(number, f"2026-01-01 00:00:0{number}") for number in range(5)]
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", rows)
    start = "2026-01-01 00:00:02"
    assert Follower(reader(context, store, timestamp="at", start=start)).ids() == [3, 4]
    assert Follower(reader(context, store, timestamp="at", incrementing="id", start=start)).ids() == [3, 4]
    assert Follower(reader(context, store, incrementing="id", start=1)).ids() == [2, 3, 4]


def test_a_query_in_place_of_a_table(context: Context, store: Store) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER, name VARCHAR(20))")
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", [(1, "anna"), (2, "bert"), (3, "arno")])
    query = f"SELECT id AS number, upper(name) AS name, 100 % 7 AS rest FROM {store.table} WHERE name LIKE 'a%';"
    rows = Follower(reader(context, store, query=query, incrementing="number")).rows()
    assert [(row["number"], row["name"], row["rest"]) for row in rows] == [(1, "ANNA", 2), (3, "ARNO", 2)]


@pytest.mark.parametrize(
    "times",
    [
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2999-01-01T00:00:00Z"],
        [1_767_225_600, 1_767_225_601, 32_472_144_000],
        [1_767_225_600_000, 1_767_225_601_000, 32_472_144_000_000],
    ],
)
def test_sqlite_has_times_of_many_kinds(context: Context, lite: Store, times: list[str | int]) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP)")
    lite.execute("INSERT INTO TABLE_ VALUES (?, ?)", list(enumerate(times)))
    rows = Follower(reader(context, lite, timestamp="at")).rows()
    assert [(row["id"], int(row["at"].timestamp())) for row in rows] == [(0, 1_767_225_600), (1, 1_767_225_601)]


def test_the_second_that_runs_is_read_when_it_is_over(
    context: Context, lite: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP)")
    lite.execute("INSERT INTO TABLE_ VALUES (1, '2026-01-31 12:00:00'), (2, '2026-01-31 12:00:00.5')")
    follower = Follower(reader(context, lite, timestamp="at"))
    now = datetime(2026, 1, 31, 12, 0, 0, 900_000, tzinfo=UTC)
    monkeypatch.setattr(database_stream, "_database_now", lambda _: now)
    assert follower.ids() == []
    now += timedelta(seconds=0.2)
    assert follower.ids() == [1, 2]


def test_a_delay_waits_longer(context: Context, lite: Store) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)")
    lite.execute("INSERT INTO TABLE_ (id) VALUES (1)")
    lite.execute("INSERT INTO TABLE_ VALUES (2, datetime('now', '-2 hours'))")
    follower = Follower(reader(context, lite, timestamp="at", delay="1 hour"))
    assert follower.ids(all_of_now=True) == [2]


def test_the_database_is_not_asked_before_it_is_time(context: Context, lite: Store) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER)")
    source = reader(context, lite, incrementing="id", poll="1 hour")
    stream = DatabaseStreamReader(source.settings, raw_schema(source.columns), 2)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadMaxRows(2)) == start
    lite.execute("INSERT INTO TABLE_ VALUES (1), (2), (3)")
    assert stream.latestOffset(start, ReadMaxRows(2)) == start
    stream = DatabaseStreamReader(source.settings, raw_schema(source.columns), 2)
    first = stream.latestOffset(start, ReadMaxRows(2))
    # The batch was full, so there may be more, and the next is not waited for.
    assert stream.latestOffset(first, ReadMaxRows(2)) == {"incrementing": 3}
    stream.stop()


def test_a_batch_again(context: Context, store: Store) -> None:
    store.execute("CREATE TABLE TABLE_ (id INTEGER, at TIMESTAMP NULL)")
    rows = [(number, f"2026-01-01 00:00:0{number}") for number in range(5)]
    store.execute("INSERT INTO TABLE_ VALUES (?, ?)", rows)
    source = reader(context, store, timestamp="at", incrementing="id")
    start = json.dumps({"timestamp": None, "incrementing": None})
    end = json.dumps({"timestamp": "2026-01-01 00:00:02", "incrementing": 2})
    raw = source.raw_batch(start, end)
    assert not raw.isStreaming
    assert values(source.rows(raw).collect()) == [0, 1, 2]
    assert json.loads(source.initial_offset() or "") == json.loads(start)


TYPES = {
    "sqlite": "ratio REAL, name TEXT, bytes BLOB, day DATE, at TIMESTAMP, free",
    "mariadb": "ratio DOUBLE, name TEXT, bytes BLOB, day DATE, at DATETIME(6), free JSON",
    "postgresql": "ratio DOUBLE PRECISION, name TEXT, bytes BYTEA, day DATE, at TIMESTAMPTZ, free JSONB",
}  # fmt: skip


def test_types(context: Context, store: Store, read: Read) -> None:
    store.execute(
        f"CREATE TABLE TABLE_ (id INTEGER, big BIGINT, yes BOOLEAN, price DECIMAL(10,2), {TYPES[store.kind]})"
    )
    row = (1, 2**40, True, "12.50", 0.1, "é", b"\x00\xff", "2026-01-31", "2026-01-31 12:00:00.123456", '{"a": 1}')
    store.execute("INSERT INTO TABLE_ VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [row, (2, *([None] * 9))])
    source = reader(context, store, incrementing="id")
    stream = source.rows(source.raw_stream())
    assert [field.dataType.simpleString() for field in stream.schema.fields][1:-2] == [
        "bigint", "boolean", "decimal(10,2)", "double", "string", "binary", "date", "timestamp", "string",
    ]  # fmt: skip
    first, second = (found.asDict() for found in read(stream.selectExpr("*", "unix_micros(at) AS micros")))
    micros = int(datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC).timestamp() * 1_000_000)
    assert first["micros"] == micros
    assert [first[name] for name in ("big", "yes", "price", "ratio", "name", "bytes", "day")] == [
        2**40, True, Decimal("12.50"), 0.1, "é", b"\x00\xff", date(2026, 1, 31),
    ]  # fmt: skip
    assert json.loads(first["free"]) == {"a": 1}
    assert {second[name] for name in visible(stream) if name != "id"} == {None}


def test_a_value_that_does_not_fit_its_column_is_its_rows_error(context: Context, lite: Store, read: Read) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER, size BIGINT, day DATE)")
    lite.execute(
        "INSERT INTO TABLE_ VALUES (?, ?, ?)", [(1, "big", "2026-01-31"), (2, 3, "soon"), (3, 3, "2026-02-01")]
    )
    rows = read_rows(read, reader(context, lite, incrementing="id"))
    assert [row["_error"] and row["_error"]["error"] for row in rows] == ["wrong-type", "wrong-type", None]
    assert rows[0]["_error"]["message"].startswith("size is 'big', which is not bigint")
    assert (rows[1]["size"], rows[2]["day"]) == (3, date(2026, 2, 1))


def test_a_stream_keeps_asking(context: Context, lite: Store) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER)")
    source = reader(context, lite, incrementing="id", poll="10ms")
    found: list[int] = []
    stream = source.rows(source.raw_stream())
    query = stream.writeStream.foreachBatch(lambda batch, _: found.extend(values(batch.collect()))).start()
    try:
        for number in range(3):
            lite.execute("INSERT INTO TABLE_ VALUES (?)", [(number,)])
            query.processAllAvailable()
            assert found[-1:] == [number]
        assert found == [0, 1, 2]
    finally:
        query.stop()


def test_passwords_are_not_in_plans(context: Context, postgresql: Any) -> None:
    with psycopg.connect(postgresql.url.replace("postgres://", "postgresql://")) as connection:
        table = unique("secret").replace("-", "_")
        connection.execute(f"CREATE TABLE {table} (id INTEGER)")
    source = DatabaseReader(DatabaseSource(database=postgresql.url, table=table, incrementing="id"), "shop", context)
    raw = source.raw_stream()
    plan = raw._jdf.queryExecution().toString()
    assert postgresql.password not in plan
    batch = source.raw_batch('{"incrementing": null}', '{"incrementing": 1}')
    assert postgresql.password not in batch._jdf.queryExecution().toString()


def test_what_is_not_there_is_told(context: Context, store: Store) -> None:
    with pytest.raises(PipelineError, match=store.table):
        reader(context, store, incrementing="id")
    store.execute("CREATE TABLE TABLE_ (id INTEGER, name VARCHAR(20))")
    with pytest.raises(PipelineError, match="there is no column number; there are id, name"):
        reader(context, store, incrementing="number")
    with pytest.raises(PipelineError, match="cannot be read"):
        reader(context, store, query="SELEC 1", incrementing="id")


def test_a_file_that_is_not_there(context: Context, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    with pytest.raises(PipelineError, match=r"none.db cannot be read: there is no such file"):
        DatabaseReader(DatabaseSource(database=url, table="t", incrementing="id"), "shop", context)
    assert not (tmp_path / "none.db").exists()


def test_a_table_that_goes_away_stops_the_query(context: Context, lite: Store, read: Read) -> None:
    lite.execute("CREATE TABLE TABLE_ (id INTEGER)")
    source = reader(context, lite, incrementing="id")
    lite.execute("DROP TABLE TABLE_")
    with pytest.raises(StreamingQueryException, match="no such table"):
        read_rows(read, source)


def test_a_database_without_an_address(context: Context) -> None:
    url = "mysql://nobody@127.0.0.1:1/none"
    with pytest.raises(PipelineError, match=r"mysql://nobody@127\.0\.0\.1:1/none cannot be read"):
        DatabaseReader(DatabaseSource(database=url, table="t", incrementing="id"), "shop", context)


def test_a_database_that_is_away_for_a_moment(context: Context) -> None:
    with running(PostgreSQL()) as server, psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        source = DatabaseReader(
            DatabaseSource(database=server.url, table="t", incrementing="id", poll="10ms"), "shop", context
        )
        found: list[int] = []
        stream = source.rows(source.raw_stream())
        query = stream.writeStream.foreachBatch(lambda batch, _: found.extend(values(batch.collect()))).start()
        try:
            query.processAllAvailable()
            server.stop()
            server.start()
            with psycopg.connect(server.url) as again:
                again.execute("INSERT INTO t VALUES (2)")
            eventually(lambda: found == [1, 2])
            assert query.exception() is None
        finally:
            query.stop()

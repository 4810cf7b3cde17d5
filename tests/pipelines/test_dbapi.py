"""Databases from Python: names, placeholders, patience, and addresses that are wrong."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pymysql
import pytest

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.spark import dbapi


def test_names_are_quoted() -> None:
    assert dbapi.quoted("mysql", "a`b") == "`a``b`"
    assert dbapi.quoted("postgresql", 'a"b') == '"a""b"'
    assert dbapi.quoted_table("sqlite", "main.t") == '"main"."t"'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a b.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(12_000)])
        connection.commit()
    return file


def test_rows_come_in_chunks_and_values_where_their_places_are(file: Path) -> None:
    with dbapi.Session(parse_database(f"sqlite:///{file}")) as session:
        sql = f"SELECT id, '%?' FROM t WHERE id >= {dbapi.PARAMETER} ORDER BY id"
        chunks = list(session.chunks(sql, [2000]))
        assert [len(chunk) for chunk in chunks] == [5000, 5000]
        assert chunks[0][0] == (2000, "%?")
        assert session.first(f"SELECT id FROM t WHERE id = {dbapi.PARAMETER}", [-1]) is None


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        dbapi.Session(parse_database(f"sqlite:///{tmp_path}/none.db"))
    assert list(tmp_path.iterdir()) == []


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def test_what_is_away_is_waited_for() -> None:
    clock, errors = Clock(), [ConnectionRefusedError(), sqlite3.OperationalError("database is locked")]

    def action() -> int:
        if errors:
            raise errors.pop(0)
        return 7

    assert dbapi.persist("sqlite", action, sleep=clock.sleep, clock=lambda: clock.now) == 7
    assert clock.pauses == [0.1, 0.2]


def test_patience_has_an_end() -> None:
    clock = Clock()

    def action() -> None:
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError, match="no answer"):
        dbapi.persist("mysql", action, seconds=10, sleep=clock.sleep, clock=lambda: clock.now)
    assert 10 <= clock.now < 14
    assert max(clock.pauses) == 3.0


@pytest.mark.parametrize(
    ("kind", "error", "away"),
    [
        ("sqlite", sqlite3.OperationalError("no such table: t"), False),
        ("sqlite", sqlite3.OperationalError("database is locked"), True),
        ("mysql", pymysql.err.OperationalError(2003, "Can't connect"), True),
        ("mysql", pymysql.err.OperationalError(1045, "Access denied"), False),
        ("mariadb", pymysql.err.InterfaceError(0, ""), True),
        ("mariadb", pymysql.err.ProgrammingError(1146, "no table"), False),
        ("postgresql", psycopg.OperationalError("connection refused"), True),
        ("postgresql", psycopg.OperationalError('password authentication failed for user "x"'), False),
        ("postgresql", psycopg.errors.AdminShutdown("bye"), True),
        ("postgresql", psycopg.errors.UndefinedTable("no table"), False),
    ],
)
def test_which_errors_pass(kind: str, error: Exception, away: bool) -> None:
    assert dbapi.is_away(kind, error) is away


def test_a_mistake_is_not_tried_again() -> None:
    clock = Clock()

    def action() -> None:
        raise sqlite3.OperationalError("no such table: t")

    with pytest.raises(sqlite3.OperationalError):
        dbapi.persist("sqlite", action, sleep=clock.sleep, clock=lambda: clock.now)
    assert clock.pauses == []


@pytest.mark.parametrize(
    ("query", "checks_host", "verifies"),
    [("sslMode=trust", False, False), ("sslMode=verify-ca", False, True), ("sslMode=verify-full", True, True)],
)
def test_encryption_of_mysql(query: str, checks_host: bool, verifies: bool) -> None:
    context = dbapi._mysql_encryption(dict([query.split("=")]))
    assert context is not None
    assert (context.check_hostname, context.verify_mode.name == "CERT_REQUIRED") == (checks_host, verifies)
    assert dbapi._mysql_encryption({}) is None

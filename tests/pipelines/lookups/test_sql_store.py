"""Tables of SQL databases as stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.spark.lookups.sql import SqlSettings, SqlStore, key_value
from millstream.pipelines.spark.lookups.store import StoreAway
from millstream.stores import MariaDB
from support.cluster import unique
from support.databases import SqlDatabase


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> SqlDatabase:
    if request.param == "sqlite":
        return SqlDatabase(f"sqlite:///{tmp_path}/d.db")
    return SqlDatabase(request.getfixturevalue(request.param).url)


@contextmanager
def store(database: SqlDatabase, table: str, key: str, key_type: str, *columns: str) -> Iterator[SqlStore]:
    found = SqlSettings(parse_database(database.url), table, key, key_type, columns).open()
    try:
        yield found
    finally:
        found.close()


def new_table(database: SqlDatabase, columns: str, rows: str = "") -> str:
    table = unique("users").replace("-", "_")
    database.run(f"CREATE TABLE {table} ({columns})")
    if rows:
        database.run(f"INSERT INTO {table} VALUES {rows}")
    return table


def test_rows_by_a_number_as_their_key(database: SqlDatabase) -> None:
    columns = "id INTEGER PRIMARY KEY, name VARCHAR(20), born DATE"
    table = new_table(database, columns, "(1, 'Ann', '2001-02-03'), (2, NULL, NULL)")

    with store(database, table, "id", "bigint", "name", "born") as users:
        found = users.get(["1", "2", "3", "x", "01"])

    assert set(found) == {"1", "2", "01"}
    assert found["1"] == found["01"]
    assert {name: str(value) for name, value in dict(found["1"]).items()} == {"name": "Ann", "born": "2001-02-03"}
    assert found["2"] == {"name": None, "born": None}


def test_rows_by_a_text_with_anything_in_it(database: SqlDatabase) -> None:
    rows = "('50%', 1), ('it''s ? %s', 2), ('ü', 3), ('twice', 4), ('twice', 4)"
    table = new_table(database, "k VARCHAR(40), n INTEGER", rows)

    with store(database, table, "k", "string", "n") as users:
        found = users.get(["50%", "it's ? %s", "ü", "twice", "none"])

    assert {key: dict(row)["n"] for key, row in found.items()} == {"50%": 1, "it's ? %s": 2, "ü": 3, "twice": 4}


def test_the_next_question_sees_what_is_new(database: SqlDatabase) -> None:
    table = new_table(database, "k VARCHAR(20), n INTEGER")
    with store(database, table, "k", "string", "n") as users:
        assert users.get(["a"]) == {}

        database.run(f"INSERT INTO {table} VALUES ('a', 1)")

        assert users.get(["a"]) == {"a": {"n": 1}}
        database.run(f"DROP TABLE {table}")  # which would wait for a transaction that is still open


def test_a_table_that_is_gone_is_not_a_store_that_is_away(database: SqlDatabase) -> None:
    database.run("SELECT 1")
    with (
        store(database, "no_such_table", "k", "string", "n") as users,
        pytest.raises(Exception, match="no_such") as caught,
    ):
        users.get(["a"])

    assert not isinstance(caught.value, StoreAway)


def test_a_server_that_goes_is_away_until_it_is_back(mariadb: MariaDB) -> None:
    database = SqlDatabase(mariadb.url)
    table = new_table(database, "k VARCHAR(20), n INTEGER", "('a', 1)")
    where = rf"^mysql://\S+@127.0.0.1:{mariadb.port}/\S+, table {table} does not answer: "
    with store(database, table, "k", "string", "n") as users:
        assert users.get(["a"]) == {"a": {"n": 1}}

        mariadb.kill()
        try:
            with pytest.raises(StoreAway, match=where):
                users.get(["a"])
        finally:
            mariadb.start()

        assert users.get(["a"]) == {"a": {"n": 1}}


def test_a_lost_connection_is_made_anew_without_a_word(mariadb: MariaDB) -> None:
    database = SqlDatabase(mariadb.url)
    table = new_table(database, "k VARCHAR(20), n INTEGER")
    with store(database, table, "k", "string", "n") as users:
        users.get(["a"])
        for (other,) in database.run("SELECT id FROM information_schema.processlist WHERE command = 'Sleep'"):
            database.run(f"KILL {other}")

        assert users.get(["a"]) == {}


@pytest.mark.parametrize(
    ("key", "type_", "value"),
    [
        ("5", "int", 5), ("x", "bigint", None), ("1.5", "int", None), ("1.50", "decimal(10,2)", Decimal("1.5")),
        ("x", "decimal(10,2)", None), ("nan", "decimal(10,2)", None), ("1.5", "double", 1.5), ("x", "double", None),
        ("TRUE", "boolean", True), ("0", "boolean", False), ("x", "boolean", None), ("5", "string", "5"),
        ("2024-01-01", "date", "2024-01-01"),
    ],
)  # fmt: skip
def test_a_key_as_the_key_column_has_it(key: str, type_: str, value: Any) -> None:
    found = key_value(key, type_)

    assert found == value
    assert type(found) is type(value)

"""Databases for the tests of sinks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.databases import SqlDatabase


@pytest.fixture
def database_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], SqlDatabase]:
    """A database of that kind without tables of other tests; servers start when they are asked for."""

    def database(kind: str) -> SqlDatabase:
        if kind == "sqlite":
            return SqlDatabase(f"sqlite:///{tmp_path}/test.db")
        database = SqlDatabase(request.getfixturevalue(kind).url)
        if kind == "mariadb":
            for (name,) in database.run("SHOW TABLES"):
                database.run(f"DROP TABLE `{name}`")
        else:
            database.run("DROP SCHEMA public CASCADE")
            database.run("CREATE SCHEMA public")
        return database

    return database


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def database(request: pytest.FixtureRequest, database_of: Callable[[str], SqlDatabase]) -> SqlDatabase:
    """Each kind of database in turn."""
    return database_of(request.param)

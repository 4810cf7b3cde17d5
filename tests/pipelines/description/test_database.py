"""URLs of databases: taken apart, made absolute, and never quoted in a message."""

from pathlib import Path

import pytest

from millstream.pipelines import DatabaseSink
from millstream.pipelines.description.database import Database, parse_database
from millstream.pipelines.description.fields import folder_of_file


def test_taken_apart() -> None:
    database = parse_database("mysql://app:p%40ss@db.example.com/shop?useSsl=true")
    assert database == Database("mysql", "db.example.com", 3306, "shop", "app", "p@ss", "useSsl=true")
    assert database.jdbc_url == "jdbc:mysql://db.example.com:3306/shop?useSsl=true&permitMysqlScheme"
    assert database.safe_url == "mysql://app@db.example.com:3306/shop"


def test_defaults_and_synonyms() -> None:
    assert parse_database("postgres://h/db") == Database("postgresql", "h", 5432, "db", "", "", "")
    assert parse_database("postgresql://u@h:15432/db").safe_url == "postgresql://u@h:15432/db"
    assert parse_database("mariadb://[::1]/db").jdbc_url == "jdbc:mysql://[::1]:3306/db?permitMysqlScheme"


def test_sqlite_is_a_file() -> None:
    database = parse_database("sqlite:////data/shop.db")
    assert (database.kind, database.name) == ("sqlite", "/data/shop.db")
    assert database.jdbc_url == "jdbc:sqlite:/data/shop.db"
    assert database.safe_url == "sqlite:////data/shop.db"


def test_a_relative_file_is_meant_from_the_folder_of_the_pipeline(tmp_path: Path) -> None:
    with folder_of_file(tmp_path):
        sink = DatabaseSink(database="sqlite:///my%20shop.db?cache=shared", table="clicks")
    assert parse_database(sink.database).name == str(tmp_path / "my shop.db")
    assert parse_database(sink.database).query == "cache=shared"


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("oracle://scott:tiger@h/db", "'oracle' is not a database this can reach: write sqlite:///FILE, mysql://"),
        ("tiger", "this is not the URL of a database: write"),
        ("mysql://scott:tiger@h", "names no database after the host"),
        ("sqlite:///", "names no file after the host"),
        ("sqlite://tiger.db", "names no file after the host"),
        ("sqlite://tiger/x.db", "follows after three slashes"),
        ("mysql:///tiger", "names no host"),
        ("mysql://scott:tig/er@h/db", "cannot be taken apart: .* %2F for /"),
        ("mysql://scott@h:tiger/db", "cannot be taken apart"),
    ],
)
def test_mistakes_are_told_without_the_password(url: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as caught:
        parse_database(url)
    assert "tiger" not in str(caught.value)

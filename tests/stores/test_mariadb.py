"""MariaDB as a store: a client writes and reads, data outlive a kill, and the process is gone at the end."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from millstream.stores import MariaDB, StoreError
from support.stores import are_gone, running


@pytest.fixture(scope="module")
def store() -> Iterator[MariaDB]:
    with running(MariaDB()) as started:
        yield started


def connect(store: MariaDB) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    return pymysql.connect(
        host=store.host, port=store.port, user=store.user, password=store.password, database=store.database
    )


def rows(store: MariaDB, query: str) -> list[tuple[object, ...]]:
    with closing(connect(store)) as client, client.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def test_written_read_killed_and_read_again(store: MariaDB) -> None:
    with closing(connect(store)) as client, client.cursor() as cursor:
        cursor.execute("CREATE TABLE clicks (id INT PRIMARY KEY, country VARCHAR(20))")
        cursor.executemany("INSERT INTO clicks VALUES (%s, %s)", [(1, "Schweden"), (2, "日本")])
        client.commit()
    assert rows(store, "SELECT * FROM clicks ORDER BY id") == [(1, "Schweden"), (2, "日本")]

    pids, password = store.pids(), store.password
    store.kill()
    assert are_gone(pids)
    store.start()
    assert store.password == password
    assert rows(store, "SELECT * FROM clicks ORDER BY id") == [(1, "Schweden"), (2, "日本")]


def test_the_user_may_make_databases_and_users(store: MariaDB) -> None:
    with closing(connect(store)) as client, client.cursor() as cursor:
        cursor.execute("CREATE DATABASE other")
        cursor.execute("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'secret'")
        cursor.execute("GRANT SELECT ON other.* TO reader@'127.0.0.1'")
    assert ("other",) in rows(store, "SHOW DATABASES")


def test_only_this_machine_and_only_with_the_password(store: MariaDB) -> None:
    assert rows(store, "SELECT @@bind_address, @@port") == [("127.0.0.1", store.port)]
    with pytest.raises(pymysql.OperationalError, match="Access denied"):
        pymysql.connect(host=store.host, port=store.port, user=store.user, password="wrong")


def test_its_addresses(store: MariaDB) -> None:
    assert store.jdbc_url == f"jdbc:mariadb://127.0.0.1:{store.port}/millstream"
    assert store.url == f"mysql://millstream:{store.password}@127.0.0.1:{store.port}/millstream"


def test_a_name_and_a_password_with_quotes_in_a_folder_of_the_caller(tmp_path: Path) -> None:
    folder = tmp_path / ("a-long-name-for-a-folder-too-long-for-the-path-of-a-socket-" * 3)
    secret = 'it\'s \\ "secret"'
    with running(MariaDB(folder, user="o'neill", password=secret, database="my`db")) as store:
        pids = store.pids()
        assert rows(store, "SELECT DATABASE(), CURRENT_USER()") == [("my`db", "o'neill@127.0.0.1")]
    assert are_gone(pids)
    assert (folder / "data").is_dir()
    with pytest.raises(StoreError, match="has another password"):
        MariaDB(folder, password="another").start()
    with running(MariaDB(folder, user="o'neill", database="my`db")) as store:
        assert store.password == secret
        assert rows(store, "SELECT 1") == [(1,)]


def test_a_folder_that_the_set_up_program_cannot_take(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"takes no folder with a space in its name: .*/my data"):
        MariaDB(tmp_path / "my data").start()

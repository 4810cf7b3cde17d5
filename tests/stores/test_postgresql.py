"""PostgreSQL as a store: a client writes and reads, data outlive a kill, and the process is gone at the end."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from millstream.stores import PostgreSQL, StoreError
from support.stores import are_gone, running


@pytest.fixture(scope="module")
def store() -> Iterator[PostgreSQL]:
    with running(PostgreSQL()) as started:
        yield started


def rows(store: PostgreSQL, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(store.url) as client:
        return client.execute(query.encode()).fetchall()


def test_written_read_killed_and_read_again(store: PostgreSQL) -> None:
    with psycopg.connect(store.url) as client:
        client.execute("CREATE TABLE clicks (id int PRIMARY KEY, country text)")
        client.cursor().executemany("INSERT INTO clicks VALUES (%s, %s)", [(1, "Schweden"), (2, "日本")])
    assert rows(store, "SELECT * FROM clicks ORDER BY id") == [(1, "Schweden"), (2, "日本")]

    pids = store.pids()
    store.kill()
    assert are_gone(pids)
    store.start()
    assert rows(store, "SELECT * FROM clicks ORDER BY id") == [(1, "Schweden"), (2, "日本")]


def test_it_stops_though_clients_are_there(store: PostgreSQL) -> None:
    with psycopg.connect(store.url) as client:
        pids = store.pids()
        store.stop()
        assert are_gone(pids)
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")
    store.start()
    assert rows(store, "SELECT 1") == [(1,)]


def test_only_this_machine_and_only_with_the_password(store: PostgreSQL) -> None:
    assert rows(store, "SHOW listen_addresses") == [("127.0.0.1",)]
    assert rows(store, "SHOW unix_socket_directories") == [("",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(store.url.replace(store.password, "wrong"))


def test_its_addresses(store: PostgreSQL) -> None:
    assert store.jdbc_url == f"jdbc:postgresql://127.0.0.1:{store.port}/millstream"
    assert store.url == f"postgresql://millstream:{store.password}@127.0.0.1:{store.port}/millstream"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to be somebody else")
def test_root_runs_it_as_somebody_else_who_must_be_able_to_get_there(store: PostgreSQL, tmp_path: Path) -> None:
    assert Path(f"/proc/{store.pids()[0]}").stat().st_uid != 0
    tmp_path.chmod(0o700)
    with pytest.raises(StoreError, match=r"refuses to run as root, and the user \w+, .* cannot get to"):
        PostgreSQL(tmp_path / "store").start()

"""Clicks in a table of SQLite, whose primary key makes a second save of a click do nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from clicks.click import Click
from clicks.stores import Batch, StoreAway

PATIENCE_SECONDS = 2.0
"""How long another writer may take before the store counts as away."""
TABLE = """
CREATE TABLE IF NOT EXISTS clicks (
    uuid TEXT PRIMARY KEY, campaign_id INTEGER NOT NULL, pub_id INTEGER NOT NULL, timestamp INTEGER NOT NULL,
    ip TEXT NOT NULL, city TEXT NOT NULL, country TEXT NOT NULL, browser TEXT NOT NULL, platform TEXT NOT NULL,
    platform_version TEXT NOT NULL
)
"""
COLUMNS = ", ".join(Click._fields)
INSERT = f"INSERT OR IGNORE INTO clicks VALUES ({', '.join('?' * len(Click._fields))})"


class SqliteStore:
    """One file; each save is one transaction."""

    def __init__(self, file: str) -> None:
        with _away():
            self._connection = sqlite3.connect(file, timeout=PATIENCE_SECONDS, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA cache_size = -65536")
            self._connection.execute("PRAGMA wal_autocheckpoint = 10000")
            self._connection.execute(TABLE)

    def save(self, batches: Sequence[Batch]) -> None:
        with _away():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(INSERT, chain.from_iterable(batch.clicks for batch in batches))
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def count(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM clicks").fetchone()
        return int(count)

    def rows(self) -> Iterator[Click]:
        return map(Click._make, self._connection.execute(f"SELECT {COLUMNS} FROM clicks"))

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _away() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreAway(str(error)) from error


def open_store(address: str) -> SqliteStore:
    return SqliteStore(address)

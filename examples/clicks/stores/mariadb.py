"""Clicks in a table of MariaDB or MySQL, whose primary key makes a second save of a click do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from urllib.parse import unquote, urlsplit

import pymysql
from pymysql.cursors import SSCursor

from clicks.click import Click
from clicks.stores import Batch, StoreAway

PATIENCE_SECONDS = 5
TABLE = """
CREATE TABLE IF NOT EXISTS clicks (
    uuid CHAR(36) CHARACTER SET ascii PRIMARY KEY, campaign_id TINYINT NOT NULL, pub_id TINYINT NOT NULL,
    timestamp BIGINT NOT NULL, ip VARCHAR(100) NOT NULL, city VARCHAR(100) NOT NULL, country VARCHAR(100) NOT NULL,
    browser VARCHAR(100) NOT NULL, platform VARCHAR(100) NOT NULL, platform_version VARCHAR(100) NOT NULL
)
"""
COLUMNS = ", ".join(Click._fields)
MARKS = ", ".join(["%s"] * len(Click._fields))
INSERT = f"INSERT INTO clicks VALUES ({MARKS}) ON DUPLICATE KEY UPDATE uuid = VALUES(uuid)"
"""IGNORE would ignore more than keys that are there already."""


class MariaDBStore:
    """A connection, made anew when it has broken; each save is one transaction."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._open: pymysql.Connection | None = None
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_notes = 0")  # "it exists already" is what IF NOT EXISTS is for
            cursor.execute(TABLE)

    def save(self, batches: Sequence[Batch]) -> None:
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.executemany(INSERT, list(chain.from_iterable(batch.clicks for batch in batches)))
            connection.commit()

    def count(self) -> int:
        with self._connection() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM clicks")
            row = cursor.fetchone()
            assert row is not None
            return int(row[0])

    def rows(self) -> Iterator[Click]:
        with self._connection() as connection, connection.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT {COLUMNS} FROM clicks")
            yield from map(Click._make, cursor)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def _connection(self) -> Iterator[pymysql.Connection]:
        try:
            if self._open is None:
                self._open = connect(self._address)
            yield self._open
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
            broken, self._open = self._open, None
            if broken is not None:
                broken.close()
            raise StoreAway(str(error.args[-1])) from error


def connect(address: str) -> pymysql.Connection:
    """A connection to the database at a URL."""
    parts = urlsplit(address)
    return pymysql.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.lstrip("/"),
        charset="utf8mb4",
        connect_timeout=PATIENCE_SECONDS,
        read_timeout=PATIENCE_SECONDS,
        write_timeout=PATIENCE_SECONDS,
    )


def open_store(address: str) -> MariaDBStore:
    return MariaDBStore(address)

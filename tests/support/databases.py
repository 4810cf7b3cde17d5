"""SQL databases as a test sees them: an address, and what they hold, by their own Python clients."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pymysql

from millstream.pipelines.description.database import parse_database


class SqlDatabase:
    """One database. Statements run in transactions of their own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.parts = parse_database(url)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """What it answers, if anything."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with closing(self._connect()) as connection:
            cursor = connection.cursor()
            yield cursor
            connection.commit()

    def _connect(self) -> Any:
        parts = self.parts
        if parts.kind == "sqlite":
            return sqlite3.connect(parts.name)
        if parts.kind == "postgresql":
            return psycopg.connect(
                host=parts.host, port=parts.port, user=parts.user, password=parts.password, dbname=parts.name
            )
        return pymysql.connect(
            host=parts.host, port=parts.port, user=parts.user, password=parts.password, database=parts.name
        )

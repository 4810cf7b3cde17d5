"""The two databases, SQLite's or MariaDB's, and the orders in them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from example_kit import ExampleError, Run

CUSTOMERS = ("Ada", "Björn", "Chloé", "Dörte", "Eve O'Neil", "Frédéric")
ITEMS = ("rye flour, 1 kg", "spelt flour, 5 kg", 'bran "coarse"', "oat flakes", "millstone (used)")
NOTES = (None, "", "please ring twice", "fragile\nvery", "50% off; naïve 磨坊")


class Order(NamedTuple):
    """A row of table `orders`."""

    id: int
    customer: str
    item: str
    quantity: int
    cents: int
    note: str | None


COLUMNS = ", ".join(Order._fields)


class Database:
    """A database by its URL, as pipelines write it too."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._is_sqlite = url.startswith("sqlite:")

    def create_orders(self) -> None:
        number = "INTEGER PRIMARY KEY AUTOINCREMENT" if self._is_sqlite else "BIGINT PRIMARY KEY AUTO_INCREMENT"
        with self._cursor() as cursor:
            cursor.execute(
                f"CREATE TABLE orders (id {number}, customer VARCHAR(50) NOT NULL, item VARCHAR(100) NOT NULL, "
                "quantity BIGINT NOT NULL, cents BIGINT NOT NULL, note VARCHAR(200))"
            )

    def take_orders(self, count: int) -> None:
        """So many new orders, in one transaction; the database numbers them."""
        rows = [
            (random.choice(CUSTOMERS), random.choice(ITEMS), *random.choices(range(1, 1000), k=2), random.choice(NOTES))
            for _ in range(count)
        ]
        mark = "?" if self._is_sqlite else "%s"
        marks = ", ".join([mark] * 5)
        with self._cursor() as cursor:
            cursor.executemany(f"INSERT INTO orders (customer, item, quantity, cents, note) VALUES ({marks})", rows)

    def orders(self) -> list[Order]:
        with self._cursor() as cursor:
            cursor.execute(f"SELECT {COLUMNS} FROM orders ORDER BY id")
            return [Order(*row) for row in cursor.fetchall()]

    def last_id(self) -> int:
        """0 if there is no order, or no table yet."""
        tables = "sqlite_master WHERE name = 'orders'"
        if not self._is_sqlite:
            tables = "information_schema.tables WHERE table_name = 'orders' AND table_schema = DATABASE()"
        with self._cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {tables}")
            if cursor.fetchone() == (0,):
                return 0
            cursor.execute("SELECT coalesce(max(id), 0) FROM orders")
            return int(cursor.fetchone()[0])

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            yield cursor
            connection.commit()

    def _connect(self) -> Any:
        parts = urlsplit(self.url)
        if self._is_sqlite:
            return sqlite3.connect(unquote(parts.path.removeprefix("/")), timeout=30)
        import pymysql

        return pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=parts.path.lstrip("/"),
        )


@contextmanager
def databases(run: Run) -> Iterator[tuple[Database, Database]]:
    """The shop's and the warehouse's, both empty: files, or with `--real` a MariaDB that is started for the run."""
    if not run.options.real:
        files = [run.out / "shop.db", run.out / "warehouse.db"]
        for file in files:
            file.unlink(missing_ok=True)
        yield _sqlite(files[0]), _sqlite(files[1])
        return
    from millstream.stores import MariaDB, StoreError

    try:
        with MariaDB() as server:
            run.say(f"MariaDB listens on {server.host}:{server.port}")
            shop = Database(server.url)
            with shop._cursor() as cursor:
                cursor.execute("CREATE DATABASE warehouse CHARACTER SET utf8mb4")
            yield shop, Database(server.url.removesuffix(server.database) + "warehouse")
    except StoreError as error:
        raise ExampleError(f"--real: {error}") from error


def _sqlite(file: Path) -> Database:
    return Database(f"sqlite:///{file}")

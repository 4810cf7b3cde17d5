"""The two databases, SQLite's or MariaDB's, and the orders in them."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from example_kit import ExampleError, Run
from example_kit.presence import ANSWER_SECONDS, watched

T = TypeVar("T")
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.5
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
        self.execute(
            f"CREATE TABLE orders (id {number}, customer VARCHAR(50) NOT NULL, item VARCHAR(100) NOT NULL, "
            "quantity BIGINT NOT NULL, cents BIGINT NOT NULL, note VARCHAR(200))"
        )

    def take_orders(self, count: int) -> None:
        """So many new orders, in one transaction; the database numbers them. While it is away, customers wait."""
        rows = [
            (random.choice(CUSTOMERS), random.choice(ITEMS), *random.choices(range(1, 1000), k=2), random.choice(NOTES))
            for _ in range(count)
        ]
        mark = "?" if self._is_sqlite else "%s"
        marks = ", ".join([mark] * 5)
        insert = f"INSERT INTO orders (customer, item, quantity, cents, note) VALUES ({marks})"
        self._do(lambda cursor: cursor.executemany(insert, rows))

    def orders(self) -> list[Order]:
        return [Order(*row) for row in self.execute(f"SELECT {COLUMNS} FROM orders ORDER BY id")]

    def last_id(self) -> int:
        """0 if there is no order, or no table yet."""
        tables = "sqlite_master WHERE name = 'orders'"
        if not self._is_sqlite:
            tables = "information_schema.tables WHERE table_name = 'orders' AND table_schema = DATABASE()"
        if list(self.execute(f"SELECT count(*) FROM {tables}")) == [(0,)]:
            return 0
        return int(self.execute("SELECT coalesce(max(id), 0) FROM orders")[0][0])

    def execute(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """The rows that come out, in a transaction of its own."""

        def rows(cursor: Any) -> Sequence[tuple[Any, ...]]:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

        return self._do(rows)

    def ping(self) -> None:
        """Raises if the server does not answer soon."""
        with closing(self._connect(read_timeout=ANSWER_SECONDS)) as connection:
            connection.ping(reconnect=False)

    def _do(self, action: Callable[[Any], T]) -> T:
        """What the action returns, in one transaction: all of it once more if the database was away."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
                    result = action(cursor)
                    connection.commit()
                    return result
            except Exception as error:
                if not self._is_away(error) or time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE_SECONDS)

    def _is_away(self, error: Exception) -> bool:
        if self._is_sqlite:
            return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        import pymysql

        no_server = (2003, 2006, 2013, 1053)  # not reached, gone, lost on the way, shutting down
        return isinstance(error, ConnectionError | TimeoutError | pymysql.InterfaceError) or (
            isinstance(error, pymysql.OperationalError) and error.args[0] in no_server
        )

    def _connect(self, read_timeout: float | None = None) -> Any:
        parts = urlsplit(self.url)
        if self._is_sqlite:
            return sqlite3.connect(unquote(parts.path.removeprefix("/")), timeout=ANSWER_SECONDS)
        import pymysql

        return pymysql.connect(
            connect_timeout=ANSWER_SECONDS,
            read_timeout=read_timeout,
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
            shop.execute("CREATE DATABASE warehouse CHARACTER SET utf8mb4")
            with watched(run.say, "MariaDB", shop.ping):
                yield shop, Database(server.url.removesuffix(server.database) + "warehouse")
    except StoreError as error:
        raise ExampleError(f"--real: {error}") from error


def _sqlite(file: Path) -> Database:
    return Database(f"sqlite:///{file}")

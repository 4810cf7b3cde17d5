"""SQL databases from Python, through their DB-API drivers: sqlite3, PyMySQL, psycopg.

Used where rows are read inside Spark's Python workers, so it imports neither Spark nor the description's models, and a
driver only when its database is asked for. Sessions are in UTC. Nothing here writes.

Which errors mean that a database is away for the moment is decided here (`is_away`), and how long that is borne
(`persist`): what failed is tried again with growing pauses until the time is up, then the last error stands.
"""

from __future__ import annotations

import sqlite3
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote

if TYPE_CHECKING:
    from millstream.pipelines.description.database import Database

T = TypeVar("T")

PARAMETER = "\0"
"""Stands in SQL where a value comes in: drivers differ in how they write it, and a user's query may have `%` or `?`."""

CONNECT_SECONDS = 10
PATIENCE_SECONDS = 30.0
FETCH = 5000
"""How many rows are asked for at a time."""
_PAUSE, _LONGEST_PAUSE = 0.1, 3.0
_MYSQL_AWAY = frozenset({1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2014, 2055})
"""Too many connections, shutting down, lock waits, dead-locks, and the client's own: no or a lost connection."""
_LIBPQ = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
"""Options that JDBC and libpq have in common."""
_POSTGRESQL_AWAY = ("08", "40", "53", "55P03", "57P")


class Driver(NamedTuple):
    """What is particular to one kind of database."""

    connect: Callable[[Database], Any]
    cursor: Callable[[Any], Any]
    """A cursor that does not bring all rows at once."""
    quote_mark: str
    placeholder: str
    is_away: Callable[[BaseException], bool]
    now: str
    """A query for the time by the database's clock, in UTC."""


class Session:
    """A connection to one database."""

    def __init__(self, database: Database) -> None:
        self.driver = DRIVERS[database.kind]
        self._connection = self.driver.connect(database)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def cursor(self) -> Any:
        """A cursor of the driver."""
        return self._connection.cursor()

    def first(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of the answer."""
        with closing(self.cursor()) as cursor:
            cursor.execute(self._sql(sql), parameters)
            row = cursor.fetchone()
            return None if row is None else tuple(row)

    def chunks(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """All rows of the answer, some thousands at a time."""
        with closing(self.driver.cursor(self._connection)) as cursor:
            cursor.execute(self._sql(sql), parameters)
            while rows := cursor.fetchmany(FETCH):
                yield rows

    def _sql(self, sql: str) -> str:
        if self.driver.placeholder == "%s":
            sql = sql.replace("%", "%%")
        return sql.replace(PARAMETER, self.driver.placeholder)


def quoted(kind: str, name: str) -> str:
    """A column's name in SQL."""
    mark = DRIVERS[kind].quote_mark
    return mark + name.replace(mark, mark * 2) + mark


def quoted_table(kind: str, name: str) -> str:
    """A table's name in SQL; a dot stands between the schema and the table."""
    return ".".join(quoted(kind, part) for part in name.split("."))


def is_away(kind: str, error: BaseException) -> bool:
    """Whether the database cannot be reached, or is busy, and may be better in a while."""
    return isinstance(error, ConnectionError | TimeoutError) or DRIVERS[kind].is_away(error)


def persist(
    kind: str,
    action: Callable[[], T],
    *,
    seconds: float = PATIENCE_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """What `action` returns. As long as the database is away it is tried again, until the time is up."""
    pause, deadline = _PAUSE, clock() + seconds
    while True:
        try:
            return action()
        except Exception as error:
            if not is_away(kind, error) or clock() >= deadline:
                raise
        sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _connect_sqlite(database: Database) -> Any:
    # `rw` does not make a file that is not there; where writing is not allowed it reads.
    address = f"file:{quote(database.name)}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=CONNECT_SECONDS, isolation_level=None)


def _connect_mysql(database: Database) -> Any:
    import pymysql

    context = _mysql_encryption(dict(parse_qsl(database.query)))
    connection: Any = pymysql.connect(
        host=database.host,
        port=database.port,
        user=database.user or None,
        password=database.password,
        database=database.name,
        charset="utf8mb4",
        connect_timeout=CONNECT_SECONDS,
        autocommit=True,
        init_command="SET time_zone = '+00:00'",
        ssl=context,
    )
    if context is not None and not connection._secure:  # PyMySQL goes on in the clear with a server that cannot encrypt
        connection.close()
        raise ValueError(f"{database.safe_url} does not encrypt, and the URL's sslMode asks for it")
    return connection


def _mysql_encryption(options: dict[str, str]) -> ssl.SSLContext | None:
    """What MariaDB's JDBC driver understands by `sslMode` and `serverSslCert`."""
    mode = options.get("sslMode", "disable").lower()
    if mode == "disable":
        return None
    context = ssl.create_default_context(cafile=options.get("serverSslCert"))
    context.check_hostname = mode not in ("trust", "verify-ca")
    if mode == "trust":
        context.verify_mode = ssl.CERT_NONE
    return context


def _connect_postgresql(database: Database) -> Any:
    import psycopg

    given = dict(parse_qsl(database.query))
    options: dict[str, Any] = {name: value for name, value in given.items() if name in _LIBPQ}
    if given.get("ssl", "false") != "false":
        options.setdefault("sslmode", "verify-full")
    return psycopg.connect(
        host=database.host,
        port=database.port,
        user=database.user or None,
        password=database.password or None,
        dbname=database.name,
        connect_timeout=CONNECT_SECONDS,
        options="-c timezone=UTC",
        **options,
    )


def _streaming_mysql(connection: Any) -> Any:
    from pymysql.cursors import SSCursor

    return connection.cursor(SSCursor)


def _away_sqlite(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(
        word in str(error) for word in ("locked", "busy", "disk I/O")
    )


def _away_mysql(error: BaseException) -> bool:
    import pymysql

    if isinstance(error, pymysql.err.InterfaceError):
        return True
    return isinstance(error, pymysql.err.OperationalError) and bool(error.args) and error.args[0] in _MYSQL_AWAY


def _away_postgresql(error: BaseException) -> bool:
    import psycopg

    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    # Without a state there was no answer; a refused password has none either, but is no reason to wait.
    refused = "authentication failed" in str(error) or "does not exist" in str(error)
    return not refused if error.sqlstate is None else error.sqlstate.startswith(_POSTGRESQL_AWAY)


_MYSQL = Driver(
    connect=_connect_mysql,
    cursor=_streaming_mysql,
    quote_mark="`",
    placeholder="%s",
    is_away=_away_mysql,
    now="SELECT UTC_TIMESTAMP(6)",
)
DRIVERS = {
    "sqlite": Driver(
        connect=_connect_sqlite,
        cursor=lambda connection: connection.cursor(),
        quote_mark='"',
        placeholder="?",
        is_away=_away_sqlite,
        now="SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "postgresql": Driver(
        connect=_connect_postgresql,
        cursor=lambda connection: connection.cursor(name="millstream"),
        quote_mark='"',
        placeholder="%s",
        is_away=_away_postgresql,
        now="SELECT CURRENT_TIMESTAMP",
    ),
}
"""Kind of database, as its URL says -> its driver."""

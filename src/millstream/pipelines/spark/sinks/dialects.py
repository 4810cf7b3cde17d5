"""What SQL databases do differently, in one table: types, quotes, upserts, and which of their errors are whose fault.

Times are given to a database as text and in UTC, so that neither the time zone of a JVM nor that of a session can shift
them: MariaDB, MySQL: DATETIME(6) in UTC; PostgreSQL: timestamp with time zone; SQLite, which has no type for them:
`2026-01-31T12:00:00.000000Z`, which its functions read and which sorts as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyspark.sql.types import DataType, DecimalType

from millstream.pipelines.description.database import Database
from millstream.pipelines.spark.sinks.jdbc import SqlError

TEXT = "string"
"""The Spark type of whatever has no better place in a database: structs, arrays and maps as JSON, and more."""


class Blame(Enum):
    """Whose fault an error is."""

    ROW = "the row: it is refused, the others are written"
    PASSING = "nobody's for long: the connection, a lock, a server that restarts"
    SETUP = "ours or the user's: a missing table, a missing right, a type that does not fit"


@dataclass(frozen=True)
class Dialect:
    """One kind of database. `{...}` in texts is filled in by who uses it."""

    driver: str
    quote_mark: str
    types: Mapping[str, str]
    """Spark's simple type name -> the database's."""
    key_text: str
    """Text that can be (part of) a primary key."""
    catalogs: bool
    """Whether what stands before a table's name is a catalog to JDBC, not a schema."""
    row_states: tuple[str, ...] = ("22", "23")
    """SQLStates, or how they begin, of errors of single rows."""
    row_codes: frozenset[int] = frozenset()
    passing_states: tuple[str, ...] = ("08", "40")
    passing_codes: frozenset[int] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the connection."""
    session: tuple[str, ...] = ()
    """Run when a connection is opened."""
    transaction: tuple[str, ...] = ()
    """Run when a transaction begins."""
    table_suffix: str = ""
    staging_suffix: str = ""
    """After CREATE TABLE (...) of the user's and of our own tables."""
    upsert: str = "ON CONFLICT ({key}) DO UPDATE SET {sets}"
    upsert_set: str = "{column} = excluded.{column}"
    moment: tuple[str, str] = (" ", "")
    """What stands between date and time of a moment in UTC, and after them."""
    longest_row: str | None = None
    """The query that tells how many bytes a row may have."""
    read_as_text: Mapping[str, str] = field(default_factory=dict)
    """Type of a column, in capitals -> how it is read as text; moments in UTC."""
    read_session: str | None = None
    takes_nan: bool = True
    """NaN and infinity."""
    takes_nul: bool = True
    """The character U+0000 in text."""
    strict_text: bool = False
    """Text goes into a column of another type only by a cast."""

    def quote(self, name: str) -> str:
        mark = self.quote_mark
        return mark + name.replace(mark, mark * 2) + mark

    def quote_table(self, name: str) -> str:
        return ".".join(self.quote(part) for part in name.split("."))

    def type_of(self, spark_type: DataType, *, key: bool = False) -> str:
        """The database's type for a Spark type."""
        if isinstance(spark_type, DecimalType):
            template = self.types["decimal" if spark_type.precision <= 15 else "long decimal"]
            return template.format(precision=spark_type.precision, scale=spark_type.scale)
        name = spark_type.typeName()
        if name not in self.types:
            name = TEXT
        return self.key_text if key and name == TEXT else self.types[name]

    def blame(self, error: SqlError) -> Blame:
        code = error.code & 0xFF if self is DIALECTS["sqlite"] else error.code
        if error.state.startswith(self.passing_states) or code in self.passing_codes:
            return Blame.PASSING
        if error.state.startswith(self.row_states) or code in self.row_codes:
            return Blame.ROW
        return Blame.SETUP


_MYSQL = Dialect(
    driver="org.mariadb.jdbc.Driver",
    quote_mark="`",
    types={
        "boolean": "BOOLEAN",
        "byte": "TINYINT",
        "short": "SMALLINT",
        "integer": "INT",
        "long": "BIGINT",
        "float": "DOUBLE",  # FLOAT comes back rounded to six digits
        "double": "DOUBLE",
        "decimal": "DECIMAL({precision},{scale})",
        "long decimal": "DECIMAL({precision},{scale})",
        "string": "LONGTEXT",
        "binary": "LONGBLOB",
        "date": "DATE",
        "timestamp": "DATETIME(6)",  # TIMESTAMP ends in 2038
        "timestamp_ntz": "DATETIME(6)",
    },
    key_text="VARCHAR(255)",
    catalogs=True,
    row_states=("22", "23", "45"),
    # Out of range, truncated, a wrong value, a check, no partition for it: some of these come with a SQLState for all
    # uses.
    row_codes=frozenset({1264, 1265, 1292, 1366, 1406, 1411, 1526, 1690, 3819, 4025}),
    # Lock waits, too many connections, a server that stops or has become read-only, a lost connection.
    passing_codes=frozenset({1020, 1040, 1053, 1205, 1213, 1290, 1792, 1836, 2002, 2006, 2013}),
    options={"useBulkStmts": "true", "connectTimeout": "10000", "tcpKeepAlive": "true"},
    session=(
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), time_zone = '+00:00'",
        "SET NAMES utf8mb4",
    ),
    table_suffix=" DEFAULT CHARSET utf8mb4",
    staging_suffix=" ENGINE InnoDB DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
    upsert="ON DUPLICATE KEY UPDATE {sets}",
    upsert_set="{column} = VALUES({column})",
    longest_row="SELECT @@max_allowed_packet DIV 2",  # bytes of a statement may be escaped
    read_as_text={"DATETIME": "CAST({column} AS CHAR)", "TIMESTAMP": "CAST({column} AS CHAR)"},
    read_session="SET time_zone = '+00:00'",
    takes_nan=False,
)

_POSTGRESQL = Dialect(
    driver="org.postgresql.Driver",
    quote_mark='"',
    types={
        "boolean": "BOOLEAN",
        "byte": "SMALLINT",
        "short": "SMALLINT",
        "integer": "INTEGER",
        "long": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "decimal": "NUMERIC({precision},{scale})",
        "long decimal": "NUMERIC({precision},{scale})",
        "string": "TEXT",
        "binary": "BYTEA",
        "date": "DATE",
        "timestamp": "TIMESTAMP WITH TIME ZONE",
        "timestamp_ntz": "TIMESTAMP",
    },
    key_text="TEXT",
    catalogs=False,
    # 21: one statement meets the same key twice, which differed as text; 44: a view's check; P0001: a trigger says no.
    row_states=("21", "22", "23", "44", "P0001"),
    passing_states=("08", "40", "53", "55P03", "57"),
    options={"reWriteBatchedInserts": "true", "connectTimeout": "10", "tcpKeepAlive": "true"},
    transaction=("SET CONSTRAINTS ALL IMMEDIATE",),
    moment=(" ", "+00"),
    read_as_text={
        "TIMESTAMPTZ": "CAST({column} AT TIME ZONE 'UTC' AS text)",
        "TIMESTAMP": "CAST({column} AS text)",
        "JSONB": "CAST({column} AS text)",
        "JSON": "CAST({column} AS text)",
    },
    takes_nul=False,
    strict_text=True,
)

_SQLITE = Dialect(
    driver="org.sqlite.JDBC",
    quote_mark='"',
    types={
        "boolean": "BOOLEAN",
        "byte": "TINYINT",
        "short": "SMALLINT",
        "integer": "INTEGER",
        "long": "BIGINT",
        "float": "REAL",
        "double": "REAL",
        "decimal": "NUMERIC({precision},{scale})",
        "long decimal": "TEXT",  # as a number SQLite would keep 15 digits of it
        "string": "TEXT",
        "binary": "BLOB",
        "date": "TEXT",
        "timestamp": "TEXT",
        "timestamp_ntz": "TEXT",
    },
    key_text="TEXT",
    catalogs=False,
    row_states=("never",),
    row_codes=frozenset({18, 19, 20}),  # too big, a constraint, a value of the wrong type
    passing_states=("never",),
    passing_codes=frozenset({5, 6, 10, 15}),  # busy, locked, disk trouble
    options={"busy_timeout": "30000", "journal_mode": "WAL", "transaction_mode": "IMMEDIATE"},
    moment=("T", "Z"),
    takes_nan=False,
)

DIALECTS: dict[str, Dialect] = {
    "mariadb": _MYSQL,
    "mysql": _MYSQL,
    "postgresql": _POSTGRESQL,
    "sqlite": _SQLITE,
}
"""Kind of database, as its URL says it -> its dialect."""


def connection_options(database: Database) -> dict[str, str]:
    """The options of Spark's JDBC source for this database; what its URL says goes before what the dialect says."""
    dialect = DIALECTS[database.kind]
    given = {part.partition("=")[0] for part in database.query.split("&")}
    options = {name: value for name, value in dialect.options.items() if name not in given}
    if database.user:
        options |= {"user": database.user, "password": database.password}
    return {**options, "url": database.jdbc_url, "driver": dialect.driver}

"""One JDBC connection, held by the driver's JVM and used from Python.

Spark writes and reads tables by itself, but it has no transactions over several statements; those run here, over the
same driver class and through Spark's own connection factory, which finds drivers that came with `spark.jars`
(DriverManager does not). Each call costs a fraction of a millisecond, so this is for statements, not for rows.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

_CONNECTION = re.compile(r"^\(conn=\d+\) ")
"""What MariaDB's driver puts before each message. The same error must have the same words, to be counted as one
cause."""
_SQLITE = re.compile(r"\[(SQLITE_\w+)\]")


class SqlError(Exception):
    """What the database, or its driver, said: SQLState, the vendor's code, the exception's class and the message."""

    def __init__(self, state: str, code: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.code = code
        self.kind = kind
        self.message = message


class Jdbc:
    """A connection. Each statement is committed by itself, unless it stands in a `transaction`."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        """`options` are those of Spark's JDBC source; SqlError if the database does not let us in."""
        jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        url = options["url"]
        with _sql_errors(self._gateway):
            scala_options = jvm.PythonUtils.toScalaMap({"dbtable": "none", **options})
            jdbc_options = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(scala_options)
            self.connection = (
                jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url).createConnectionFactory(jdbc_options).apply(-1)
            )

    def execute(self, sql: str, *values: Any) -> int:
        """Runs a statement; the number of rows it changed."""
        with self._prepared(sql, values) as statement:
            return int(statement.executeUpdate())

    def query(self, sql: str, *values: Any) -> list[tuple[str | None, ...]]:
        """All rows of the answer, as text."""
        with self._prepared(sql, values) as statement:
            return _texts(statement.executeQuery())

    def about(self, ask: Callable[[Any], Any], *columns: str) -> list[tuple[str | None, ...]]:
        """What the database's metadata answer: `ask` gets java.sql.DatabaseMetaData and returns a ResultSet."""
        with _sql_errors(self._gateway):
            return _texts(ask(self.connection.getMetaData()), columns)

    def schema(self, *, catalog: bool) -> str | None:
        """The schema (or catalog, where that is what a database is called) of names without one."""
        with _sql_errors(self._gateway):
            found = self.connection.getCatalog() if catalog else self.connection.getSchema()
        return None if found is None else str(found)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What is done inside is committed at the end, or rolled back if anything is raised."""
        with _sql_errors(self._gateway):
            # SQLite's driver begins the next transaction, and locks the file, with the end of the last one: so no
            # connection stays in this mode.
            self.connection.setAutoCommit(False)
        try:
            yield
            self._commit()
        except BaseException:
            with contextlib.suppress(Py4JError, OSError):  # a broken connection has rolled back already
                self.connection.rollback()
                self.connection.setAutoCommit(True)
            raise
        with _sql_errors(self._gateway):
            self.connection.setAutoCommit(True)

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is done inside is undone, and no more than that, if it fails."""
        with _sql_errors(self._gateway):
            point = self.connection.setSavepoint()
        try:
            yield
        except SqlError:
            with _sql_errors(self._gateway):
                self.connection.rollback(point)
            raise
        with _sql_errors(self._gateway):
            self.connection.releaseSavepoint(point)

    def close(self) -> None:
        """Also of a connection that is broken, or in a JVM that is gone."""
        with contextlib.suppress(Py4JError, OSError):
            self.connection.close()

    def _commit(self) -> None:
        with _sql_errors(self._gateway):
            self.connection.commit()

    @contextlib.contextmanager
    def _prepared(self, sql: str, values: tuple[Any, ...]) -> Iterator[Any]:
        with _sql_errors(self._gateway):
            statement = self.connection.prepareStatement(sql)
            try:
                for position, value in enumerate(values, 1):
                    statement.setObject(position, value)
                yield statement
            finally:
                statement.close()


def sql_error(gateway: Any, error: Py4JJavaError) -> SqlError | None:
    """The innermost SQLException behind what Java threw, if there is one: that of a task too."""
    found, cause = None, error.java_exception
    while cause is not None:
        if is_instance_of(gateway, cause, "java.sql.SQLException"):
            found = cause
        cause = cause.getCause()
    if found is None:
        return None
    kind = str(found.getClass().getSimpleName())
    message = _CONNECTION.sub("", " ".join(str(found.getMessage() or kind).split()))
    if named := _SQLITE.match(message):
        kind = named[1]
    return SqlError(str(found.getSQLState() or ""), int(found.getErrorCode()), kind, message)


@contextlib.contextmanager
def _sql_errors(gateway: Any) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        found = sql_error(gateway, error)
        if found is None:
            raise
        raise found from error


def _texts(results: Any, columns: tuple[str, ...] = ()) -> list[tuple[str | None, ...]]:
    """A ResultSet as text, and closed; the named columns, or all of them."""
    wanted: tuple[Any, ...] = columns or tuple(range(1, results.getMetaData().getColumnCount() + 1))
    rows = []
    try:
        while results.next():
            rows.append(tuple(results.getString(column) for column in wanted))
    finally:
        results.close()
    return rows

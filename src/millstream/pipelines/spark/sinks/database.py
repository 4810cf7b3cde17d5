"""Rows into a table of a SQL database, each batch exactly once.

A batch goes in two movements. Spark's own JDBC writer puts the rows into a staging table (`staging`), in parallel and
with no promise. Then one transaction

1. claims the batch in the ledger `millstream_batches`, which has one row for each (pipeline, sink, query) with the
number of its last batch: an UPDATE that finds the number already there changes nothing, and the batch is done; 2.
inserts from the staging table into the user's, appending or replacing by key (of several rows with one key in a batch
the last wins); 3. empties the staging table, except for the refused rows of this batch.

So rows, claim and refusals appear together or not at all. A batch that comes again finds its claim, and the same
refused rows are handed out again, for a crash may have come before they reached the dead letters. Two processes that
write the same batch meet at the claim's row lock. Nobody empties the staging table without a claim.

A row that the table refuses (too long, null, out of range, a check) fails the whole INSERT; then halves are tried, each
behind a savepoint, until the bad rows are alone. Passing trouble (the connection, a lock) starts the batch over, for
about a minute.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.sinks import DatabaseSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks.dialects import DIALECTS, Blame, connection_options
from millstream.pipelines.spark.sinks.jdbc import Jdbc, SqlError, sql_error
from millstream.pipelines.spark.sinks.names import owner_of, short_hash
from millstream.pipelines.spark.sinks.patience import Patience
from millstream.pipelines.spark.sinks.refusals import Refusal, refused_rows
from millstream.pipelines.spark.sinks.staging import Staging
from millstream.pipelines.spark.sinks.statements import STAGING, Statements
from millstream.pipelines.spark.sinks.table_facts import TableFacts, describe, misfit, tables
from millstream.pipelines.spark.sinks.writer import Batch

T = TypeVar("T")

BATCH_SIZE = "5000"
"""Rows that Spark sends to the staging table at a time."""


class DatabaseWriter:
    """One database sink of one pipeline."""

    def __init__(self, sink: DatabaseSink, context: Context, patience: Patience | None = None) -> None:
        self._sink = sink
        self._context = context
        self._patience = patience or Patience()
        self._database = parse_database(sink.database)
        self._dialect = DIALECTS[self._database.kind]
        self._options = connection_options(self._database)
        self._jdbc: Jdbc | None = None

    def open(self, schema: StructType) -> None:
        if self._database.kind == "sqlite" and not str(self._context.spark.sparkContext.master).startswith("local"):
            raise self._error("SQLite is a file of one machine: a pipeline on a cluster needs a database server")
        absent = [name for name in self._sink.key if name not in schema.names]
        if absent:
            raise self._error(f"key: the rows have no column {', '.join(absent)}; they have {', '.join(schema.names)}")
        self._guarded(lambda: self._prepare(schema))

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        refusals = self._guarded(lambda: self._write(rows, batch))
        return refused_rows(rows, self._staging.mark, refusals, batch.sink)

    def close(self) -> None:
        if self._jdbc is not None:
            self._jdbc.close()
            self._jdbc = None

    # --- opening

    def _prepare(self, schema: StructType) -> None:
        """Makes the tables that are missing, and finds what does not fit."""
        jdbc = self._connected()
        owner = f"{STAGING}{owner_of(self._context.pipeline, self._sink)}_"
        staging = owner + short_hash(schema.json(), length=6)
        self._sql = Statements(self._dialect, self._sink, schema, staging)
        facts = self._target(jdbc, schema)
        for old in tables(jdbc, self._dialect, self._sink.table, owner):
            if old != staging:  # from before the rows had these columns
                jdbc.execute(f"DROP TABLE {self._dialect.quote_table(old)}")
        jdbc.execute(self._sql.create_ledger)
        jdbc.execute(self._sql.create_staging())
        limit = self._dialect.longest_row
        longest = int(jdbc.query(limit)[0][0] or 0) if limit else None
        self._staging = Staging(self._dialect, schema, self._sink.key, longest)
        self._insert = self._sql.insert(facts)
        jdbc.execute(
            self._insert, "none", 0, 0
        )  # there is no such attempt: it tells of types and rights that do not fit

    def _target(self, jdbc: Jdbc, schema: StructType) -> TableFacts:
        """The user's table as it is, made if it was missing."""
        facts = describe(jdbc, self._dialect, self._sink.table)
        if facts is None:
            if not self._sink.create:
                raise self._error("there is no such table, and `create` is false")
            jdbc.execute(self._sql.create_target())
            facts = describe(jdbc, self._dialect, self._sink.table)
        if facts is None:
            raise self._error("the table was made, but this user does not see it")
        wrong = misfit(facts, schema, self._sink.key)
        if wrong:
            raise self._error(wrong)
        return facts

    # --- writing

    def _write(self, rows: DataFrame, batch: Batch) -> list[Refusal]:
        jdbc = self._connected()
        attempt = self._claimed(jdbc, batch)
        if attempt is None:
            attempt = secrets.token_hex(8)
            self._stage(rows, attempt)
            if not self._transfer(jdbc, batch, attempt):
                attempt = self._claimed(jdbc, batch)
        found = jdbc.query(self._sql.refused, attempt)
        return [Refusal(int(mark or 0), str(error), str(message)) for mark, error, message in found]

    def _claimed(self, jdbc: Jdbc, batch: Batch) -> str | None:
        """The attempt that wrote this batch; None, and a line in the ledger to claim it, if none did."""
        line = (batch.pipeline, batch.sink, batch.query)
        found = jdbc.query(self._sql.find_claim, *line)
        if not found:
            try:
                jdbc.execute(self._sql.enter, *line)
            except SqlError as error:
                if self._dialect.blame(error) is not Blame.ROW:  # else another process was faster
                    raise
        return str(found[0][1]) if found and int(found[0][0] or 0) >= batch.number else None

    def _stage(self, rows: DataFrame, attempt: str) -> None:
        staged = self._staging.rows(rows, attempt)
        if self._database.kind == "sqlite":
            staged = staged.coalesce(1)  # it has one writer at a time
        options = {**self._options, "dbtable": self._sql.staging_table, "batchsize": BATCH_SIZE}
        try:
            staged.write.format("jdbc").options(**options).mode("append").save()
        except Py4JJavaError as error:
            raise sql_error(self._context.spark.sparkContext._gateway, error) or error from error

    def _transfer(self, jdbc: Jdbc, batch: Batch, attempt: str) -> bool:
        """The transaction; False if another attempt has written the batch."""
        line = (batch.pipeline, batch.sink, batch.query)
        with jdbc.transaction():
            for statement in self._dialect.transaction:
                jdbc.execute(statement)
            if not jdbc.execute(self._sql.claim, batch.number, attempt, *line, batch.number):
                return False
            ((count, first, last),) = jdbc.query(self._sql.extent, attempt)
            if first is not None:
                self._insert_range(jdbc, attempt, int(first), int(last or 0), int(count or 0))
            jdbc.execute(self._sql.clear, attempt)
        return True

    def _insert_range(self, jdbc: Jdbc, attempt: str, first: int, last: int, count: int) -> None:
        """Inserts the `count` rows from `first` to `last`, in order and without those that the table refuses."""
        try:
            with jdbc.savepoint():
                jdbc.execute(self._insert, attempt, first, last)
            return
        except SqlError as error:
            if self._dialect.blame(error) is not Blame.ROW:
                raise
            if count == 1:
                jdbc.execute(self._sql.refuse, error.state or error.kind, error.message, attempt, first, last)
                return
        half = count // 2
        ((found,),) = jdbc.query(f"{self._sql.nth}{half}", attempt, first, last)
        middle = int(found or 0)
        self._insert_range(jdbc, attempt, first, middle - 1, half)
        self._insert_range(jdbc, attempt, middle, last, count - half)

    # --- the connection

    def _connected(self) -> Jdbc:
        if self._jdbc is None:
            self._jdbc = Jdbc(self._context.spark, self._options)
            for statement in self._dialect.session:
                self._jdbc.execute(statement)
        return self._jdbc

    def _guarded(self, action: Callable[[], T]) -> T:
        """Does it, with patience; whatever fails leaves no transaction open."""

        def attempt() -> T:
            try:
                return action()
            except Exception:
                self.close()
                raise

        try:
            return self._patience.persist(attempt, self._passing)
        except SqlError as error:
            waited = f" (tried for {self._patience.seconds:.0f} s)" if self._passing(error) else ""
            raise self._error(f"{error.message} [{error.state or error.kind}]{waited}") from error

    def _passing(self, error: Exception) -> bool:
        return isinstance(error, SqlError) and self._dialect.blame(error) is Blame.PASSING

    def _error(self, what: str) -> PipelineError:
        return PipelineError(f"table {self._sink.table} of {self._database.safe_url}: {what}", self._sink.place)

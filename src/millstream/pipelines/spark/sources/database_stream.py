"""`millstream-database`: new and changed rows of a table as a stream, read in Python by Spark's workers.

An offset is the last value of the incrementing column and/or of the timestamp. A micro-batch is everything after its
start up to and with its end, ordered by these columns, so the same batch asked for again is the same query again. With
both columns, rows with the same timestamp are told apart by the incrementing one.

A timestamp's second must be over (by the database's clock, `delay` ago) before its rows are read: another row with the
same timestamp may still come, and nobody would look for it later. Rows whose column is null are never found.

This module is imported by Spark's Python workers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.spark import dbapi
from millstream.pipelines.spark.sources.arrow_rows import ArrowRows

NAME = "millstream-database"
LIMIT = 100_000
"""How many rows a micro-batch has at most, if nobody says."""
_LONGEST_NAP = 0.25
"""A query that is being stopped waits for an answer of its sources, so no answer takes longer than this."""

Offset = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What is read, and how."""

    url: str
    relation: str
    """The table, or the query in brackets with a name, as SQL."""
    incrementing: str | None
    timestamp: str | None
    start: str | int | None
    delay: float
    poll: float

    @classmethod
    def from_json(cls, text: str) -> Settings:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class DatabaseStream(DataSource):
    """Options: `url` (the settings, under a name that Spark never prints), `limit`; for a batch `start` and `end`.

    Without columns to tell rows apart by, a batch has all rows.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> DatabaseStreamReader:  # noqa: N802 - Spark's name
        settings = Settings.from_json(self.options["url"])
        return DatabaseStreamReader(settings, schema, int(self.options.get("limit", LIMIT)))

    def reader(self, schema: StructType) -> DataSourceReader:
        settings = Settings.from_json(self.options["url"])
        between = Between(json.loads(self.options.get("start", "{}")), json.loads(self.options.get("end", "{}")))
        return DatabaseBatchReader(settings, schema, between)


class Between(InputPartition):
    """The rows after one offset up to and with another."""

    def __init__(self, start: Offset, end: Offset) -> None:
        self.start = start
        self.end = end


class Range:
    """The SQL conditions of offsets; values are collected in `parameters` in the order of their placeholders."""

    def __init__(self, settings: Settings) -> None:
        self.kind = parse_database(settings.url).kind
        given = {"timestamp": settings.timestamp, "incrementing": settings.incrementing}
        found = {field: name for field, name in given.items() if name is not None}
        self.fields = list(found)
        self.columns = [dbapi.quoted(self.kind, name) for name in found.values()]
        self.parameters: list[Any] = []

    @property
    def order(self) -> str:
        return ", ".join(self.columns)

    def after(self, offset: Offset) -> str:
        """Also keeps out rows without a value: they have no place in the order."""
        present = [f"{column} IS NOT NULL" for column in self.columns]
        return " AND ".join([*present, *self._compare(offset, ">", ">")])

    def up_to(self, offset: Offset) -> str:
        return " AND ".join(self._compare(offset, "<", "<="))

    def before(self, timestamp: Any) -> str:
        self.parameters.append(timestamp)
        return f"{self.columns[0]} < {dbapi.PARAMETER}"

    def _compare(self, offset: Offset, sign: str, last_sign: str) -> Iterator[str]:
        """Compares the columns with an offset, the first column first; not with what the offset does not have."""
        values = [self.parameter(field, offset.get(field)) for field in self.fields]
        mark = dbapi.PARAMETER
        if not values or values[0] is None:
            return
        if len(values) == 2 and values[1] is not None:
            first, second = self.columns
            self.parameters += [values[0], values[0], values[1]]
            yield f"({first} {sign} {mark} OR ({first} = {mark} AND {second} {last_sign} {mark}))"
        else:
            self.parameters.append(values[0])
            yield f"{self.columns[0]} {last_sign if len(values) == 1 else sign} {mark}"

    def parameter(self, field: str, value: Any) -> Any:
        """A value of an offset as the driver takes it."""
        if field != "timestamp" or self.kind == "sqlite" or not isinstance(value, str):
            return value
        moment = datetime.fromisoformat(value)
        if self.kind == "postgresql" or moment.tzinfo is None:
            return moment
        return moment.astimezone(UTC).replace(tzinfo=None)


class DatabaseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in one Python process beside the driver, for as long as the query does; `read` in the workers."""

    def __init__(self, settings: Settings, schema: StructType, limit: int) -> None:
        self._settings = settings
        self._schema = schema
        self._limit = limit
        self._database = parse_database(settings.url)
        self._session: dbapi.Session | None = None
        self._asked = 0.0
        self._ceiling: Any = None
        self._bounded = False

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return initial_offset(self._settings)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that will be read."""
        self._bounded = True
        self._ceiling = self._ask(self._find_ceiling)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        wait = self._asked + self._settings.poll - time.monotonic()
        if wait > 0 and not self._bounded:
            time.sleep(min(wait, _LONGEST_NAP))
            return start
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        end, full = self._ask(lambda session: self._find_end(session, start, rows))
        # A full batch says that there is more, so the next is looked for without waiting.
        self._asked = 0.0 if full else time.monotonic()
        return start if end is None else end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [] if start == end else [Between(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Between)
        return read_between(self._settings, self._schema, partition)

    def commit(self, end: Offset) -> None:
        """The database keeps no positions."""

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()

    def _ask(self, question: Callable[[dbapi.Session], Any]) -> Any:
        """Asks over a connection that is kept, and made anew when it breaks."""

        def attempt() -> Any:
            if self._session is None:
                self._session = dbapi.Session(self._database)
            try:
                return question(self._session)
            except Exception:
                broken, self._session = self._session, None
                with suppress(Exception):
                    broken.close()
                raise

        return dbapi.persist(self._database.kind, attempt)

    def _find_end(self, session: dbapi.Session, start: Offset, limit: int) -> tuple[Offset | None, bool]:
        """The offset of the last row of the next micro-batch, None if there is none; and whether it is a full one."""
        found = Range(self._settings)
        conditions = [found.after(start)]
        if self._settings.timestamp is not None:
            bound = self._ceiling
            if not self._bounded:
                bound = self._as_column(session, self._whole_second(_database_now(session)))
            if bound is None:
                return None, False
            conditions.append(found.before(bound))
        elif self._bounded:
            if self._ceiling is None:
                return None, False
            conditions.append(found.up_to({"incrementing": self._ceiling}))
        keys = ", ".join(found.columns)
        source = f"SELECT {keys} FROM {self._settings.relation} WHERE {' AND '.join(conditions)}"
        last = session.first(f"{source} ORDER BY {found.order} LIMIT 1 OFFSET {limit - 1}", found.parameters)
        full = last is not None
        if last is None:
            descending = ", ".join(f"{column} DESC" for column in found.columns)
            last = session.first(f"{source} ORDER BY {descending} LIMIT 1", found.parameters)
        if last is None:
            return None, False
        return {field: _plain(value) for field, value in zip(found.fields, last, strict=True)}, full

    def _find_ceiling(self, session: dbapi.Session) -> Any:
        if self._settings.timestamp is None:
            name = dbapi.quoted(self._database.kind, self._settings.incrementing or "")
            row = session.first(f"SELECT MAX({name}) FROM {self._settings.relation}")
            return None if row is None else _plain(row[0])
        # Rows of this very second count too, so it has to be over.
        now = _database_now(session)
        bound = self._whole_second(now) + timedelta(seconds=1)
        time.sleep(max(0.0, (bound - now).total_seconds()))
        return self._as_column(session, bound)

    def _whole_second(self, now: datetime) -> datetime:
        return (now - timedelta(seconds=self._settings.delay)).replace(microsecond=0)

    def _as_column(self, session: dbapi.Session, bound: datetime) -> Any:
        """A time as the timestamp column has it; None if that cannot be known, for the table is empty."""
        if self._database.kind == "postgresql":
            return bound
        if self._database.kind != "sqlite":
            return bound.replace(tzinfo=None)
        # SQLite has no type for times: the bound is written as the column's values are.
        name = dbapi.quoted("sqlite", self._settings.timestamp or "")
        row = session.first(f"SELECT {name} FROM {self._settings.relation} WHERE {name} IS NOT NULL LIMIT 1")
        if row is None:
            return None
        if isinstance(row[0], int | float):
            milliseconds = row[0] > 100_000_000_000
            return int(bound.timestamp()) * (1000 if milliseconds else 1)
        return f"{bound:%Y-%m-%d}{'T' if 'T' in str(row[0]) else ' '}{bound:%H:%M:%S}"


class DatabaseBatchReader(DataSourceReader):
    """The rows between two offsets once more."""

    def __init__(self, settings: Settings, schema: StructType, between: Between) -> None:
        self._settings = settings
        self._schema = schema
        self._between = between

    def partitions(self) -> Sequence[InputPartition]:
        return [self._between]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Between)
        return read_between(self._settings, self._schema, partition)


def initial_offset(settings: Settings) -> Offset:
    """Before the first row, or after the user's start."""
    if settings.timestamp is None:
        return {"incrementing": settings.start}
    both = {} if settings.incrementing is None else {"incrementing": None}
    return {"timestamp": settings.start, **both}


def read_between(settings: Settings, schema: StructType, between: Between) -> Iterator[pa.RecordBatch]:
    """The rows of a micro-batch in the order of the offsets."""
    found = Range(settings)
    conditions = [condition for condition in (found.after(between.start), found.up_to(between.end)) if condition]
    where = f" WHERE {' AND '.join(conditions)} ORDER BY {found.order}" if conditions else ""
    rows = ArrowRows(schema)
    columns = ", ".join(dbapi.quoted(found.kind, name) for name in rows.names)
    sql = f"SELECT {columns} FROM {settings.relation}{where}"
    database = parse_database(settings.url)
    with dbapi.persist(database.kind, lambda: dbapi.Session(database)) as session:
        for chunk in session.chunks(sql, found.parameters):
            yield rows.batch(chunk)


def _database_now(session: dbapi.Session) -> datetime:
    row = session.first(session.driver.now)
    assert row is not None
    moment = datetime.fromisoformat(row[0]) if isinstance(row[0], str) else row[0]
    assert isinstance(moment, datetime)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    return value

"""A table of a SQL database as a store: one SELECT with all keys of a question.

Keys come as texts and are asked for as numbers if the key column has numbers; a text that is none is not asked for.
Where several rows have one key, one of them counts. The transaction ends with each question, so that the next one
sees what is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from millstream.pipelines.description.database import Database
from millstream.pipelines.spark import dbapi
from millstream.pipelines.spark.lookups.store import StoreAway

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TRUE = {"true": True, "false": False, "1": True, "0": False}


class SqlSettings(NamedTuple):
    """A table, its key column and that one's type, and the columns wanted."""

    database: Database
    table: str
    key: str
    key_type: str
    columns: tuple[str, ...]

    def open(self) -> SqlStore:
        return SqlStore(self)

    def __str__(self) -> str:
        return f"{self.database.safe_url}, table {self.table}"


class SqlStore:
    """A table; its connection is kept between questions, and made anew once if it turns out to be lost."""

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self._session: dbapi.Session | None = None
        kind = settings.database.kind
        names = ", ".join(dbapi.quoted(kind, name) for name in (settings.key, *settings.columns))
        self._select = f"SELECT {names} FROM {dbapi.quoted_table(kind, settings.table)}"
        self._key = dbapi.quoted(kind, settings.key)
        self._placeholder = dbapi.DRIVERS[kind].placeholder
        if self._placeholder == "%s":
            self._select, self._key = self._select.replace("%", "%%"), self._key.replace("%", "%%")

    def get(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        wanted = {key: value for key in keys if (value := key_value(key, self._settings.key_type)) is not None}
        if not wanted:
            return {}
        rows = self._rows(list(dict.fromkeys(wanted.values())))
        found: dict[Any, Sequence[Any]] = {}
        for row in rows:
            found.setdefault(_comparable(row[0]), row[1:])
        return {
            key: dict(zip(self._settings.columns, found[value], strict=True))
            for key, value in wanted.items()
            if value in found
        }

    def close(self) -> None:
        if self._session is not None:
            with suppress(Exception):  # it may be lost already
                self._session.close()
        self._session = None

    def _rows(self, values: Sequence[Any]) -> list[Any]:
        had_connection = self._session is not None
        try:
            return self._asked(values)
        except Exception as error:
            self.close()
            if not dbapi.is_away(self._settings.database.kind, error):
                raise
            if not had_connection:
                raise StoreAway(f"{self._settings} does not answer: {error}") from error
        return self._rows(values)

    def _asked(self, values: Sequence[Any]) -> list[Any]:
        if self._session is None:
            self._session = dbapi.Session(self._settings.database)
        with closing(self._session.cursor()) as cursor:
            marks = ", ".join([self._placeholder] * len(values))
            cursor.execute(f"{self._select} WHERE {self._key} IN ({marks})", list(values))
            rows = list(cursor.fetchall())
            cursor.connection.rollback()
            return rows


def key_value(key: str, type_: str) -> Any:
    """A key as the key column has it; None if it cannot be in it. A database reads all but numbers from texts
    itself."""
    try:
        if type_ in _WHOLE:
            return int(key)
        if type_.startswith("decimal"):
            number = Decimal(key)
            return number if number.is_finite() else None
        if type_ in ("float", "double"):
            return float(key)
    except (ValueError, InvalidOperation):
        return None
    return _TRUE.get(key.lower()) if type_ == "boolean" else key


def _comparable(value: Any) -> Any:
    """As the key that was asked for: numbers as numbers, all else as text, which for a date is as Spark writes it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, int | float | Decimal) else str(value)

"""Rows of a Python database driver as Arrow batches of a Spark schema.

Drivers give what they like: SQLite text for a time and a number for a truth value, MySQL bytes for a BIT, PostgreSQL a
dict for JSON. Each column has a function that makes of it what the column's Spark type wants. A value that it cannot
make anything of is null, and the row's last column, `_problem`, says which and why: one bad value is one bad row.

This module is imported by Spark's Python workers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

PROBLEM = "_problem"
"""The last column of a raw row: null, or which value did not fit its column."""
_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ArrowRows:
    """Makes batches of one schema, whose last column is `_problem`."""

    def __init__(self, schema: StructType) -> None:
        assert schema.names[-1] == PROBLEM
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._fields = schema.fields[:-1]
        self._convert = [converter(field.dataType) for field in self._fields]
        self.names = schema.names[:-1]

    def batch(self, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        """The rows, their values in the order of the schema."""
        problems: list[str | None] = [None] * len(rows)
        columns: list[list[Any]] = []
        for field, convert, values in zip(self._fields, self._convert, zip(*rows, strict=True), strict=True):
            column: list[Any] = []
            for number, value in enumerate(values):
                try:
                    column.append(None if value is None else convert(value))
                except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
                    column.append(None)
                    kind = field.dataType.simpleString()
                    problem = f"{field.name} is {str(value)[:100]!r}, which is not {kind} ({error})"
                    problems[number] = problem if problems[number] is None else f"{problems[number]}; {problem}"
            columns.append(column)
        arrays = [
            pa.array(values, type=field.type) for values, field in zip((*columns, problems), self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def converter(kind: DataType) -> Callable[[Any], Any]:
    """From what a driver gives to what Arrow takes for a Spark type; ValueError and its like if it does not fit."""
    match kind:
        case ByteType() | ShortType() | IntegerType() | LongType():
            limit = 1 << (_BITS[type(kind)] - 1)
            return lambda value: _whole(value, limit)
        case FloatType() | DoubleType():
            return float
        case DecimalType():
            return lambda value: _decimal(value, kind.precision, kind.scale)
        case BooleanType():
            return _truth
        case TimestampType():
            return _moment
        case TimestampNTZType():
            return lambda value: _moment(value).replace(tzinfo=None)
        case DateType():
            return _day
        case BinaryType():
            return lambda value: value.encode() if isinstance(value, str) else bytes(value)
        case ArrayType():
            item = converter(kind.elementType)
            return lambda value: [None if part is None else item(part) for part in value]
    return _text


def _whole(value: Any, limit: int) -> int:
    number = int.from_bytes(value) if isinstance(value, bytes) else int(value)
    if number != value and not isinstance(value, str | bytes):
        raise ValueError("not a whole number")
    if not -limit <= number < limit:
        raise OverflowError("out of range")
    return number


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    number = round(Decimal(str(value)), scale)
    if not number.is_finite() or number.adjusted() >= precision - scale:
        raise OverflowError("out of range")
    return number


def _truth(value: Any) -> bool:
    if isinstance(value, bytes):
        return any(value)
    if isinstance(value, str):
        return {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}[value.lower()]
    return bool(value)


def _moment(value: Any) -> datetime:
    """In UTC; what has no time zone is UTC. Numbers are seconds since 1970, or milliseconds if they are that large."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000 if abs(value) > 100_000_000_000 else value, UTC)
    if isinstance(value, timedelta):
        return _EPOCH + value
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise TypeError(f"a {type(value).__name__}")


def _day(value: Any) -> date:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, int):  # MySQL's YEAR
        return date(value, 1, 1)
    raise TypeError(f"a {type(value).__name__}")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)

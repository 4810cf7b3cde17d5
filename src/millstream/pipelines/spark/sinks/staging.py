"""Rows on their way into a database: a table of our own beside the user's, which takes whatever Spark can hold.

Its columns are (attempt, row, mark, error, message, c0, c1, ...). An attempt is one evaluation of one batch: rows of
other attempts, of a process that died or still runs, lie beside it and count for nothing. `row` gives the order,
`mark` finds the row again in Spark, `error` and `message` are set for rows that are refused. It has no constraint but
its primary key (attempt, row), so that the rows get this far and the user's table decides about them, one by one if
need be. Values that no column of that database could hold are refused on the way in; they are never changed to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from millstream.pipelines.spark.sinks.dialects import Dialect
from millstream.pipelines.spark.sinks.refusals import mark_of, quoted

AS_JSON = (StructType, ArrayType, MapType, VariantType)
MANAGED = ("attempt", "row", "mark", "error", "message")
REFUSED = "value"
"""The kind of error of what is refused on the way in."""

_PLAIN = (NumericType, BooleanType, StringType, BinaryType)
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def staged_type(given: DataType) -> DataType:
    """What a column is when it is staged: a number, a truth value, bytes, or text."""
    return given if isinstance(given, _PLAIN) else StringType()


class Staging:
    """How the rows of one schema are given to one kind of database."""

    def __init__(self, dialect: Dialect, schema: StructType, key: Sequence[str], longest_row: int | None) -> None:
        """`longest_row`: how many bytes of text and binary a row may have, if the database has a limit."""
        sent = {field.name: _sent(field, dialect) for field in schema.fields}
        self.mark = mark_of(schema)
        problems: list[Column] = []
        self._values = []
        too_long = _too_long(schema, sent, longest_row)
        if too_long is not None:
            problems.append(F.when(too_long, f"the row has more than the {longest_row} bytes that the server takes"))
        for i, field in enumerate(schema.fields):
            value = sent[field.name]
            for unfit, why in _unfit(field, value, dialect):
                problems.append(F.when(unfit, f"{field.name}: {why}"))
                value = F.when(~unfit, value)
            if field.name in key:
                problems.append(F.when(value.isNull(), f"{field.name}: part of the key, and null"))
            if too_long is not None and isinstance(staged_type(field.dataType), StringType | BinaryType):
                value = F.when(~too_long, value)
            self._values.append(value.alias(f"c{i}"))
        self._problem = F.coalesce(*problems, F.lit(None).cast("string"))

    def rows(self, rows: DataFrame, attempt: str) -> DataFrame:
        """The rows with the staging table's columns. The attempt is text: Spark would compile the query anew for a
        number."""
        error = F.when(self._problem.isNotNull(), REFUSED)
        managed = [F.lit(attempt), F.monotonically_increasing_id(), self.mark, error, self._problem]
        return rows.select(*[column.alias(name) for column, name in zip(managed, MANAGED, strict=True)], *self._values)


def _sent(field: StructField, dialect: Dialect) -> Column:
    """The value as it is sent."""
    column, kind = F.col(quoted(field.name)), field.dataType
    between, after = dialect.moment
    if isinstance(kind, _PLAIN):
        return column
    if isinstance(kind, AS_JSON):
        return F.to_json(column)
    if isinstance(kind, TimestampType):
        utc = F.expr(f"timestampadd(MICROSECOND, unix_micros({quoted(field.name)}), {_EPOCH})")
        return F.concat(_moment(utc, between), F.lit(after))
    if isinstance(kind, TimestampNTZType):
        return _moment(column, between)
    return column.cast("string")


def _moment(time: Column, between: str) -> Column:
    """A time without zone as text of always the same length, so that it sorts."""
    text = time.cast("string")
    long = F.rpad(F.when(F.length(text) == 19, F.concat(text, F.lit("."))).otherwise(text), 26, "0")
    return F.concat(F.substring(long, 1, 10), F.lit(between), F.substring(long, 12, 15))


def _unfit(field: StructField, sent: Column, dialect: Dialect) -> Iterator[tuple[Column, str]]:
    """What no column of this database could hold: (condition, why)."""
    column, kind = F.col(quoted(field.name)), field.dataType
    if isinstance(kind, FractionalType) and kind.typeName() != "decimal" and not dialect.takes_nan:
        infinite = F.abs(column) == F.lit(float("inf"))
        yield F.coalesce(F.isnan(column) | infinite, F.lit(False)), "the database has neither NaN nor infinity"
    if isinstance(kind, StringType) and not dialect.takes_nul:
        yield F.coalesce(F.contains(sent, F.lit("\0")), F.lit(False)), "the database has no character U+0000"
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        year = F.year(column)
        yield F.coalesce((year < 1) | (year > 9999), F.lit(False)), "not in the years 1 to 9999"


def _too_long(schema: StructType, sent: dict[str, Column], limit: int | None) -> Column | None:
    lengths = [
        F.coalesce(F.octet_length(sent[field.name]), F.lit(0)).cast("bigint")
        for field in schema.fields
        if isinstance(staged_type(field.dataType), StringType | BinaryType)
    ]
    if limit is None or not lengths:
        return None
    return sum(lengths[1:], lengths[0]) > limit

"""Rows that a sink refuses, found again among the rows of the batch.

A store tells which row it refuses long after the row has left Spark, and the row's origin (for the dead letters)
never went to the store. So each row carries a mark, a hash of its values, and the refusals come back with it. A mark
says what a row holds, not where it stood: it finds the same row when Spark computes the batch again in another order,
or after a restart. Of rows that are the same through and through, as many are refused as the store refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from millstream.pipelines.spark.rows import ERROR, ERROR_TYPE

MESSAGE_LENGTH = 500
"""A longer message is cut: it goes into a record's header."""

_MARK, _NTH, _KIND, _TEXT = "_millstream_mark", "_millstream_nth", "_millstream_kind", "_millstream_text"


class Refusal(NamedTuple):
    """The row's mark, the kind of error (groups dead letters by cause) and the store's own words."""

    mark: int
    error: str
    message: str


def mark_of(schema: StructType) -> Column:
    """The mark of a row with these columns."""
    return F.xxhash64(*[_hashable(field) for field in schema.fields])


def refused_rows(rows: DataFrame, mark: Column, refusals: Iterable[Refusal], sink: str) -> DataFrame | None:
    """The rows with these marks, all their columns, `_error` set; None if nothing was refused."""
    seen: Counter[int] = Counter()
    numbered = []
    for refusal in refusals:
        seen[refusal.mark] += 1
        numbered.append((refusal.mark, seen[refusal.mark], refusal.error, refusal.message[:MESSAGE_LENGTH]))
    if not numbered:
        return None
    schema = f"{_MARK} bigint, {_NTH} int, {_KIND} string, {_TEXT} string"
    refused = rows.sparkSession.createDataFrame(numbered, schema)
    marks = refused.select(_MARK).distinct()
    candidates = rows.withColumn(_MARK, mark).join(F.broadcast(marks), _MARK, "left_semi")
    order = Window.partitionBy(_MARK).orderBy(F.monotonically_increasing_id())
    found = candidates.withColumn(_NTH, F.row_number().over(order)).join(F.broadcast(refused), [_MARK, _NTH])
    error = F.struct(F.lit(f"sink {sink}").alias("stage"), F.col(_KIND).alias("error"), F.col(_TEXT).alias("message"))
    return found.withColumn(ERROR, error.cast(ERROR_TYPE)).drop(_MARK, _NTH, _KIND, _TEXT)


def _hashable(field: StructField) -> Column:
    """Spark hashes no map: two that are equal may have their entries in another order. Of one row's, they stay as
    they are."""
    column = F.col(quoted(field.name))
    return F.to_json(column) if "map<" in field.dataType.simpleString() else column


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"

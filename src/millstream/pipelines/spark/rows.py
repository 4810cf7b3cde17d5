"""The hidden columns that travel with a row: where it came from, and what went wrong with it.

`_origin` is the record as it was read, for the dead letters; `_error` is null as long as all is well. Both are dropped
before a sink writes. Spark does not read what nobody uses, so a row's raw value costs nothing unless it is needed.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

ORIGIN = "_origin"
ERROR = "_error"
HIDDEN = (ORIGIN, ERROR)

ORIGIN_TYPE = (
    "struct<topic: string, partition: int, offset: bigint, timestamp: timestamp, key: binary, value: binary, "
    "headers: array<struct<key: string, value: binary>>>"
)
"""What is not a topic's record has the source's name as `topic`, the row as JSON in `value`, and nulls."""
ERROR_TYPE = "struct<stage: string, error: string, message: string>"


def no_error() -> Column:
    return F.lit(None).cast(ERROR_TYPE).alias(ERROR)


def error(stage: str, kind: str, message: Column) -> Column:
    """The error of a row: the stage it happened in, its kind (groups dead letters by cause), and the message."""
    return F.struct(F.lit(stage).alias("stage"), F.lit(kind).alias("error"), message.alias("message")).cast(ERROR_TYPE)


def visible(rows: DataFrame) -> list[str]:
    """The names of the columns that are the user's."""
    return [name for name in rows.columns if name not in HIDDEN]


def without_hidden(rows: DataFrame) -> DataFrame:
    return rows.drop(*HIDDEN)


def visible_schema(rows: DataFrame) -> StructType:
    return StructType([field for field in rows.schema.fields if field.name not in HIDDEN])

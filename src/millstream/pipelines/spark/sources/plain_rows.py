"""The hidden columns of rows that do not come from a topic."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from millstream.pipelines.spark.rows import ORIGIN, ORIGIN_TYPE


def origin(topic: Column, columns: Sequence[Column], value: Column | None = None) -> Column:
    """`_origin`: the name of where it came from, and the row as JSON, or the bytes it was read from."""
    row = F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).cast("binary") if value is None else value
    empty = F.lit(None)
    return (
        F.struct(
            topic.alias("topic"),
            empty.cast("int").alias("partition"),
            empty.cast("bigint").alias("offset"),
            empty.cast("timestamp").alias("timestamp"),
            empty.cast("binary").alias("key"),
            row.alias("value"),
            empty.cast("array<struct<key: string, value: binary>>").alias("headers"),
        )
        .cast(ORIGIN_TYPE)
        .alias(ORIGIN)
    )

"""Bad rows into the dead-letter topic: the record as it came, and what went wrong in its headers.

A dead letter is written before its batch is done, so none is lost; a batch that is done again after a crash writes
its dead letters again. How they look, and what can be done with them, is in `millstream.pipelines.dead_letters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from millstream.pipelines import dead_letters
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, ORIGIN, ORIGIN_TYPE, visible

EXAMPLES = 3


def write_dead_letters(context: Context, bad: Sequence[DataFrame]) -> int:
    """Writes all rows of these DataFrames, each with `_error`; how many they were. PipelineError if errors shall stop
    it."""
    records = reduce(DataFrame.unionByName, (as_records(rows, context.pipeline.name) for rows in bad))
    if context.pipeline.on_error == "fail":
        _refuse(bad)
    seen = Observation()
    records.observe(seen, F.count(F.lit(1)).alias("rows")).write.mode("append").format("kafka").options(
        **context.kafka_options()
    ).option("topic", context.pipeline.dead_letter_topic).save()
    return int(seen.get["rows"])


def as_records(rows: DataFrame, pipeline: str) -> DataFrame:
    """Key, value and headers of the dead letters. A row whose origin a step has dropped is its own value, as JSON."""
    if ORIGIN not in rows.columns:
        row = F.to_json(F.struct(*map(F.col, visible(rows)))) if visible(rows) else F.lit(None).cast("string")
        rows = rows.withColumn(
            ORIGIN,
            F.struct(
                F.lit(None).cast("string").alias("topic"), F.lit(None).cast("int").alias("partition"),
                F.lit(None).cast("bigint").alias("offset"), F.lit(None).cast("timestamp").alias("timestamp"),
                F.lit(None).cast("binary").alias("key"), row.cast("binary").alias("value"),
                F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
            ).cast(ORIGIN_TYPE),
        )  # fmt: skip
    origin, error = F.col(ORIGIN), F.col(ERROR)
    reasons = {
        dead_letters.PIPELINE: F.lit(pipeline),
        dead_letters.STAGE: error["stage"],
        dead_letters.ERROR: error["error"],
        dead_letters.MESSAGE: F.left(error["message"], F.lit(dead_letters.LONGEST_MESSAGE)),
        dead_letters.ORIGIN_TOPIC: origin["topic"],
        dead_letters.ORIGIN_PARTITION: origin["partition"],
        dead_letters.ORIGIN_OFFSET: origin["offset"],
        dead_letters.ORIGIN_TIMESTAMP: F.unix_millis(origin["timestamp"]),
        dead_letters.TIME: F.unix_millis(F.current_timestamp()),
    }
    ours = F.filter(
        F.array(*(_header(name, value) for name, value in reasons.items())), lambda header: header["value"].isNotNull()
    )
    theirs = F.coalesce(origin["headers"], F.array().cast("array<struct<key: string, value: binary>>"))
    return rows.select(
        origin["key"].alias("key"), origin["value"].alias("value"), F.concat(theirs, ours).alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def _refuse(bad: Sequence[DataFrame]) -> None:
    for rows in bad:
        for row in rows.select(ERROR).limit(EXAMPLES).collect():
            error = row[ERROR]
            raise PipelineError(f"`on_error: fail`, and a record is bad: {error['message']} ({error['stage']})")

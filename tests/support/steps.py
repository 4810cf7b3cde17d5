"""Steps of a pipeline on rows that a test writes down, static or as a stream of micro-batches."""

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from millstream.cluster.connection import Connection
from millstream.pipelines.description.element import Place
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import ConsoleSink
from millstream.pipelines.description.sources import TopicSource
from millstream.pipelines.description.steps import Step
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, ORIGIN, ORIGIN_TYPE, no_error, visible
from millstream.pipelines.spark.steps import StepContext, apply_step

PLACE = Place("p.yaml", 7, "steps[0]")
_folders = itertools.count()


def context(spark: SparkSession, **frames: DataFrame) -> StepContext:
    pipeline = Pipeline(name="p", source=TopicSource(topic="t"), sinks=(ConsoleSink(console=True),))
    return StepContext(Context(spark, pipeline, Connection("127.0.0.1:9"), Path("/nowhere")), frames, PLACE)


def applied(rows: DataFrame, *steps: Step, **frames: DataFrame) -> DataFrame:
    """The rows after the steps; those with an error are left out before the next one, as in a pipeline."""
    for index, step in enumerate(steps):
        if index and ERROR in rows.columns:
            rows = rows.where(F.col(ERROR).isNull())
        rows = apply_step(rows, step, context(rows.sparkSession, **frames))
    return rows


def with_hidden(rows: DataFrame) -> DataFrame:
    """As a source gives them: the origin has the row's number as its offset, and the row as its value."""
    number = F.monotonically_increasing_id() if not rows.isStreaming else F.lit(0).cast("bigint")
    row = F.to_json(F.struct(*(f"`{name}`" for name in rows.columns))).cast("binary")
    null = F.lit(None)
    origin = F.struct(
        F.lit("t").alias("topic"), F.lit(0).alias("partition"), number.alias("offset"),
        null.cast("timestamp").alias("timestamp"), null.cast("binary").alias("key"), row.alias("value"),
        F.array(F.struct(F.lit("h").alias("key"), F.lit(b"1").alias("value"))).alias("headers"),
    )  # fmt: skip
    return rows.select("*", origin.cast(ORIGIN_TYPE).alias(ORIGIN), no_error())


def static(spark: SparkSession, schema: str, *rows: Sequence[Any]) -> DataFrame:
    """Static rows with their hidden columns, in order."""
    return with_hidden(spark.createDataFrame(list(rows), schema).coalesce(1))


def texts(spark: SparkSession, *values: str | None) -> DataFrame:
    return static(spark, "value string", *((value,) for value in values))


def values(rows: DataFrame) -> list[tuple[Any, ...]]:
    """What a user sees of the good rows."""
    if ERROR in rows.columns:
        rows = rows.where(F.col(ERROR).isNull())
    return [tuple(row) for row in rows.select(*(f"`{name}`" for name in visible(rows))).collect()]


class RowError(NamedTuple):
    offset: int | None
    stage: str
    error: str
    message: str


def errors(rows: DataFrame) -> list[RowError]:
    """The errors of the bad rows, with the offset of their origin if they have one."""
    bad = rows.where(F.col(ERROR).isNotNull())
    offset = F.col(ORIGIN)["offset"] if ORIGIN in rows.columns else F.lit(None)
    return [
        RowError(*row) for row in bad.select(offset, f"{ERROR}.stage", f"{ERROR}.error", f"{ERROR}.message").collect()
    ]


def offsets(rows: DataFrame) -> list[int]:
    """The origins of the rows, by their offsets."""
    return [row[0] for row in rows.select(F.col(ORIGIN)["offset"]).collect()]


class FileStream:
    """A stream with one micro-batch for each list of rows."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str, *batches: Iterable[Mapping[str, Any]]) -> None:
        self._folder = folder / f"stream-{next(_folders)}"
        self._folder.mkdir()
        self._spark = spark
        self._schema = schema
        self._count = 0
        for batch in batches:
            self.add(batch)

    def add(self, batch: Iterable[Mapping[str, Any]]) -> None:
        """One more micro-batch."""
        file = self._folder / f"{self._count:04}.json"
        hidden = file.with_name(f".{file.name}")  # Spark does not look at it until it is whole
        hidden.write_text("\n".join(json.dumps(row) for row in batch))
        os.utime(hidden, (1_000_000_000 + self._count * 10,) * 2)
        hidden.rename(file)
        self._count += 1

    @property
    def rows(self) -> DataFrame:
        reader = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", 1)
        return with_hidden(reader.json(str(self._folder)))


def start(rows: DataFrame, function: Any, checkpoint: Path, mode: str = "append") -> StreamingQuery:
    writer = rows.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint)).foreachBatch(function)
    return writer.trigger(availableNow=True).start()


def streamed(rows: DataFrame, checkpoint: Path, mode: str = "append") -> list[list[tuple[Any, ...]]]:
    """What comes out of each micro-batch with something in it, sorted; without hidden columns."""
    found: list[list[tuple[Any, ...]]] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.append(sorted(values(batch), key=repr))

    query = start(rows, keep, checkpoint, mode)
    query.awaitTermination()
    return [batch for batch in found if batch]

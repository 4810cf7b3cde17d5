"""What the tests of sinks share: a pipeline around a sink, batches for its writer, and crashes at chosen moments."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.cluster.connection import Connection
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import Sink
from millstream.pipelines.description.sources import GeneratorSource
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ORIGIN, ORIGIN_TYPE, no_error, visible_schema
from millstream.pipelines.spark.sinks import WRITERS, sink_name
from millstream.pipelines.spark.sinks.writer import Batch, Writer

QUERY = "11111111-2222-3333-4444-555555555555"


class Crash(BaseException):  # it stands for a process that is gone
    """The process ends here."""


def context_for(spark: SparkSession, sink: Sink, folder: Path, bootstrap: str = "127.0.0.1:1") -> Context:
    """A pipeline with this sink alone."""
    sinks: Any = (sink,)
    pipeline = Pipeline(name="orders", source=GeneratorSource(generate={}), sinks=sinks)
    return Context(spark, pipeline, Connection(bootstrap), folder)


def writer_for(context: Context) -> Writer:
    """The writer of the pipeline's only sink."""
    (sink,) = context.pipeline.sinks
    return WRITERS[type(sink)](sink, context)


def batch(context: Context, number: int, query: str = QUERY) -> Batch:
    return Batch(context.pipeline.name, query, sink_name(context.pipeline, 0), number)


def rows_of(spark: SparkSession, schema: str, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows as they come to a sink, in order: with the hidden columns, the origin's offset counting the rows."""
    found = spark.createDataFrame([(*row, offset) for offset, row in enumerate(rows)], f"{schema}, _offset bigint")
    origin = F.from_json(F.concat(F.lit('{"topic": "in", "offset": '), F.col("_offset"), F.lit("}")), ORIGIN_TYPE)
    return found.coalesce(1).withColumn(ORIGIN, origin).drop("_offset").select("*", no_error())


def counted(spark: SparkSession, count: int, *expressions: str) -> DataFrame:
    """Rows that Spark makes itself, which is quick: `id` from 0, and more columns."""
    origin = F.lit(None).cast(ORIGIN_TYPE).alias(ORIGIN)
    return spark.range(0, count, 1, 1).selectExpr(*expressions).select("*", origin, no_error())


def written(context: Context, *batches: DataFrame) -> list[DataFrame | None]:
    """The batches written one after the other by one writer; what it returned."""
    writer = writer_for(context)
    writer.open(visible_schema(batches[0]))
    try:
        return [writer.write(rows, batch(context, number)) for number, rows in enumerate(batches)]
    finally:
        writer.close()


def errors_in(refused: DataFrame | None) -> list[dict[str, Any]]:
    """The refused rows as dicts."""
    assert refused is not None
    return [row.asDict(recursive=True) for row in refused.collect()]


@contextmanager
def crash_at(moment: int, target: Any, *methods: str) -> Iterator[Callable[[], bool]]:
    """The `moment`-th call of one of the target's methods does not return; even moments: it was not made either.

    What is yielded tells whether it came to that.
    """
    calls, crashed = 0, False

    def patched(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal calls, crashed
            mine, calls = calls, calls + 1
            if mine != moment // 2:
                return original(*args, **options)
            crashed = True
            if moment % 2:
                with suppress(Exception):
                    original(*args, **options)
            raise Crash

        return call

    with ExitStack() as stack:
        for name in methods:
            stack.enter_context(mock.patch.object(target, name, patched(getattr(target, name))))
        yield lambda: crashed

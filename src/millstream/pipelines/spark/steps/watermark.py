"""Watermark: which column is the event time, and how late rows may be. What is done with late rows is in `late`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampNTZType, TimestampType

from millstream.pipelines.description.spans import span_text
from millstream.pipelines.description.steps import WatermarkStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import visible
from millstream.pipelines.spark.steps.analysis import must_have
from millstream.pipelines.spark.steps.context import StepContext

DELAY = "spark.watermarkDelayMs"
"""Where Spark notes, in the event time column's metadata, how late rows may be."""


def apply_watermark(rows: DataFrame, step: WatermarkStep, context: StepContext) -> DataFrame:
    must_have(rows, [step.column], context.place)
    type_ = next(field.dataType for field in rows.schema.fields if field.name.lower() == step.column.lower())
    if not isinstance(type_, TimestampType | TimestampNTZType):
        raise PipelineError(
            f"the event time must be a timestamp, and {step.column} is {type_.simpleString()}: cast it before",
            context.place,
        )
    return rows.withWatermark(step.column, span_text(step.delay))


def event_time(rows: DataFrame) -> str | None:
    """The column that carries the watermark, under whatever name it has by now."""
    marked = (field.name for field in rows.schema.fields if DELAY in (field.metadata or {}))
    return next((name for name in marked if name in visible(rows)), None)


def delay_seconds(rows: DataFrame) -> float | None:
    """How late rows may be; None without a watermark."""
    column = event_time(rows)
    return None if column is None else float(rows.schema[column].metadata[DELAY]) / 1000

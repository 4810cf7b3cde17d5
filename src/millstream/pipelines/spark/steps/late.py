"""Late rows sent aside (`watermark: {late: dead-letter}`), exactly those that Spark's stateful operator drops.

Spark drops late rows without a word. Which ones follows from its rule: in batch N, a row is late if its deadline is
not after the watermark of batch N-1, and the deadline is the row's event time or, in an aggregation by windows, the
end of the last window that the row is in. That watermark is known only on the driver, and there for certain: it
stands in the query's offset log, and a batch that is done again finds the same one. So

- `beside` puts the rows as they were before the stateful step into the same query, next to its results. They are part
  of the same batches and under the same watermark; they keep no state. The source is read once more for them.
- `split` takes a micro-batch apart again: the results, and the late rows with `_error` set.

A companion query with batches and a watermark of its own would only come near. In the output mode `complete` Spark
drops nothing, so there is nothing to send aside.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.spans import span_text
from millstream.pipelines.description.steps import AggregateStep, DeduplicateStep, JoinStep, SqlStep, StateStep, Step
from millstream.pipelines.spark import rows as hidden
from millstream.pipelines.spark.rows import ERROR
from millstream.pipelines.spark.steps import statement
from millstream.pipelines.spark.steps.analysis import quoted
from millstream.pipelines.spark.steps.watermark import event_time

STAGE = "watermark"
KIND = "late"
_LATE = "_late"
_DEADLINE = "deadline"
_TIME = "time"
_ROW = "row"


def beside(results: DataFrame, before: DataFrame, step: Step) -> DataFrame:
    """The results of a stateful step and, in a column of their own, the rows before it that may be late for it."""
    time = event_time(before)
    due = None if time is None else deadline(step, time)
    if time is None or due is None:
        return results
    row = F.struct(*(F.col(quoted(name)) for name in before.columns))
    late = F.struct(due.alias(_DEADLINE), F.col(quoted(time)).cast("timestamp").alias(_TIME), row.alias(_ROW))
    candidates = before.select(late.alias(_LATE))
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in results.schema.fields]
    return results.withColumn(_LATE, F.lit(None).cast(candidates.schema[_LATE].dataType)).union(
        candidates.select(*nothing, _LATE)
    )


def split(batch: DataFrame, watermark_ms: int) -> tuple[DataFrame, DataFrame | None]:
    """The results, and the rows that were late by the watermark of the batch before; None if none were put beside."""
    if _LATE not in batch.columns:
        return batch, None
    late = F.col(_LATE)
    results = batch.where(late.isNull()).drop(_LATE)
    watermark = F.timestamp_millis(F.lit(watermark_ms))
    rows = batch.where(late.isNotNull() & (late[_DEADLINE] <= watermark)).select(f"{_LATE}.{_ROW}.*", _LATE)
    message = F.concat(F.lit("its event time "), late[_TIME].cast("string"), F.lit(" is behind the watermark "),
                       watermark.cast("string"))  # fmt: skip
    return results, rows.withColumn(ERROR, hidden.error(STAGE, KIND, message)).drop(_LATE)


def deadline(step: Step, time: str) -> Column | None:
    """Until when the watermark may not have passed for a row to count in this step; None: the step drops no rows."""
    column = F.col(quoted(time)).cast("timestamp")
    if isinstance(step, AggregateStep):
        if step.window is None or step.window.column.lower() != time.lower():
            return column if time.lower() in (name.strip("` ").lower() for name in step.by) else None
        if step.window.gap is not None:
            return column + interval(span_text(step.window.gap))
        size = step.window.size or 0.0
        return last_window_end(time, span_text(step.window.slide or size), span_text(size))
    if isinstance(step, StateStep):
        return column if step.time == "event" else None
    if isinstance(step, SqlStep):
        window = statement.event_window(step.sql, time)
        if window is None:
            return column if statement.keeps_time(step.sql, time) else None
        if window.gap is not None:
            return column + interval(window.gap)
        return last_window_end(time, window.slide or window.size, window.size, window.offset)
    return column if isinstance(step, DeduplicateStep | JoinStep) else None


def last_window_end(time: str, slide: str, size: str, offset: str | None = None) -> Column:
    """The end of the last window that a moment is in: windows begin every `slide`."""
    begin = F.window(quoted(time), slide, slide, offset) if offset else F.window(quoted(time), slide)
    return begin["start"].cast("timestamp") + interval(size)


def interval(text: str) -> Column:
    return F.lit(text).cast("interval")

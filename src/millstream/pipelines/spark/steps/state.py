"""State: a `StatefulProcessor` of the user's, with a state of its own for each key, in Spark's transformWithState.

Rows come one at a time as `Row` with the user's columns; the processor yields `Row`s. What it yields is made of any
number of rows, so it has no origin. The session needs RocksDB as its state store (`session.DEFAULTS`), and Python the
package protobuf. In a batch Spark keeps the state for as long as the batch lasts.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from millstream.pipelines.description.steps import StateStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import without_hidden
from millstream.pipelines.spark.steps import functions
from millstream.pipelines.spark.steps.analysis import must_have, quoted, schema_of
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.watermark import event_time

TIMES = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}


def apply_state(rows: DataFrame, step: StateStep, context: StepContext) -> DataFrame:
    must_have(rows, step.by, context.place)
    returns = schema_of(step.returns, context.place, "returns")
    name, found = functions.name_of(step.processor), functions.load(step.processor, context.place)
    if not (isinstance(found, type) and issubclass(found, StatefulProcessor)):
        raise PipelineError(
            f"{name} must be a class derived from pyspark.sql.streaming.StatefulProcessor", context.place
        )
    if step.time == "event" and rows.isStreaming and event_time(rows) is None:
        raise PipelineError("`time: event` needs a watermark: put a `watermark` step before this one", context.place)
    grouped = without_hidden(rows).groupBy(*(F.col(quoted(column)) for column in step.by))
    return grouped.transformWithState(found(), returns, step.output.capitalize(), TIMES[step.time])

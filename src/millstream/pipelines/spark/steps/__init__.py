"""What happens to the rows: one function for each step of the description, from DataFrame to DataFrame.

All of them work on streaming and on static DataFrames and start no job, save a look-up's file, which is read when it
must be. What can be a SQL expression is one: Spark's real-time mode runs nothing else. A step that fails on a single
row (`FALLIBLE`) sets that row's `_error` and lets it through; what is done with it is the runner's affair. Hidden
columns stay wherever a row of the result comes from one row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from millstream.pipelines.description.steps import (
    AddStep,
    AggregateStep,
    CastStep,
    DeduplicateStep,
    DropStep,
    FilterStep,
    JoinStep,
    LookupStep,
    MapStep,
    ParseStep,
    PythonStep,
    SelectStep,
    SqlStep,
    StateStep,
    Step,
    WatermarkStep,
)
from millstream.pipelines.spark.rows import HIDDEN, visible
from millstream.pipelines.spark.steps.aggregate import apply_aggregate
from millstream.pipelines.spark.steps.analysis import explained, must_be_plain, quoted
from millstream.pipelines.spark.steps.cast import apply_cast
from millstream.pipelines.spark.steps.columns import apply_add, apply_drop, apply_filter, apply_select
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.deduplicate import apply_deduplicate
from millstream.pipelines.spark.steps.join import apply_join
from millstream.pipelines.spark.steps.lookup import apply_lookup
from millstream.pipelines.spark.steps.map_rows import apply_map
from millstream.pipelines.spark.steps.parse import apply_parse
from millstream.pipelines.spark.steps.python import apply_python
from millstream.pipelines.spark.steps.sql import apply_sql
from millstream.pipelines.spark.steps.state import apply_state
from millstream.pipelines.spark.steps.watermark import apply_watermark

APPLY: dict[type[Step], Callable[[DataFrame, Any, StepContext], DataFrame]] = {
    SqlStep: apply_sql,
    ParseStep: apply_parse,
    CastStep: apply_cast,
    FilterStep: apply_filter,
    SelectStep: apply_select,
    AddStep: apply_add,
    DropStep: apply_drop,
    WatermarkStep: apply_watermark,
    DeduplicateStep: apply_deduplicate,
    AggregateStep: apply_aggregate,
    JoinStep: apply_join,
    LookupStep: apply_lookup,
    PythonStep: apply_python,
    MapStep: apply_map,
    StateStep: apply_state,
}
"""The step's description -> what it does."""

FALLIBLE: set[type[Step]] = {ParseStep, CastStep, LookupStep, MapStep}
"""Steps that can fail on a single row; after them every row has the column `_error`."""


def apply_step(rows: DataFrame, step: Step, context: StepContext) -> DataFrame:
    """The rows after the step, hidden columns last; PipelineError, with the place, says what does not fit."""
    with explained(rows, context.place):
        result = APPLY[type(step)](rows, step, context)
    must_be_plain(result, context.place)
    ordered = [*visible(result), *(name for name in HIDDEN if name in result.columns)]
    return result if ordered == result.columns else result.select(*map(quoted, ordered))


__all__ = ["APPLY", "FALLIBLE", "StepContext", "apply_step"]

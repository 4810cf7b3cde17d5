"""De-duplicate: the first row of those with the same values goes on.

In a stream Spark remembers what it has seen: for good; or, with `within`, for as long as the watermark's delay says.
That is why `within` must not be longer than the delay. Duplicates that are `within` apart are always found; those
further apart, up to the delay, may be.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from millstream.pipelines.description.steps import DeduplicateStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.steps.analysis import must_have
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.watermark import delay_seconds


def apply_deduplicate(rows: DataFrame, step: DeduplicateStep, context: StepContext) -> DataFrame:
    must_have(rows, step.by, context.place)
    by = list(step.by)
    if step.within is None or not rows.isStreaming:
        return rows.dropDuplicates(by)
    delay = delay_seconds(rows)
    if delay is None:
        raise PipelineError("`within` needs a watermark: put a `watermark` step before this one", context.place)
    if step.within > delay:
        raise PipelineError(
            f"`within` is {step.within:g} s, but the watermark's delay is {delay:g} s, and rows are remembered no "
            "longer than that: make the delay as long",
            context.place,
        )
    return rows.dropDuplicatesWithinWatermark(by)

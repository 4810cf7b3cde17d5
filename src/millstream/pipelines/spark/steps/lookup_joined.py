"""Look-ups in what can be read whole, memory and files: a join with a table that is sent to every worker.

In micro-batches a file is read again when it has changed; where the look-up is part of a streaming plan (real-time
mode, or a step before one that keeps state) it is what it was when the query started.
"""

from __future__ import annotations

import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.pipelines.description.lookup import LookupStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.lookups import asking
from millstream.pipelines.spark.lookups.store import StoreAway
from millstream.pipelines.spark.lookups.tables import KEY, WatchedFile, memory_table
from millstream.pipelines.spark.steps.analysis import quoted
from millstream.pipelines.spark.steps.checks import Check
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.lookup_rules import (
    AWAY,
    columns_wanted,
    is_missing,
    kept,
    key_of,
    refuse_common,
    with_answers,
)

_FOUND = "_lookup"


def apply_joined(rows: DataFrame, step: LookupStep, context: StepContext) -> DataFrame:
    try:
        table, away = _memory(rows, step, context) if step.type == "memory" else _file(rows.sparkSession, step, context)
    except (ValueError, StoreAway) as error:
        raise PipelineError(f"look-up {step.name}: {error}", context.place) from error
    names = [name for name in table.columns if name != KEY]
    refuse_common(rows, names, step, context)
    return _joined(rows, table, names, step) if away is None else _without(rows, table, names, step, away)


def _joined(rows: DataFrame, table: DataFrame, names: list[str], step: LookupStep) -> DataFrame:
    answers = table.select(KEY, F.struct(*(F.col(quoted(name)) for name in names)).alias(_FOUND))
    key, found = key_of(step), F.col(_FOUND)
    joined = rows.join(F.broadcast(answers), key == F.col(KEY), "inner" if step.missing == "drop" else "left")
    checks = is_missing(found.isNull(), key, step)
    return with_answers(joined, rows, {name: found[name] for name in names}, step, checks)


def _without(rows: DataFrame, table: DataFrame, names: list[str], step: LookupStep, reason: str) -> DataFrame:
    """The file is away, and the rule is to go on without: with nulls, or with an error for each row."""
    nulls = {name: F.lit(None).cast(table.schema[name].dataType) for name in names}
    checks = [Check(AWAY, F.lit(True), F.lit(reason))] if step.away == "dead-letter" else []
    return with_answers(rows, rows, nulls, step, checks)


def _memory(rows: DataFrame, step: LookupStep, context: StepContext) -> tuple[DataFrame, None]:
    spark, columns = rows.sparkSession, columns_wanted(step, context)
    return kept(spark, step, lambda: memory_table(spark, step.rows or {}, columns)), None


def _file(spark: SparkSession, step: LookupStep, context: StepContext) -> tuple[DataFrame, str | None]:
    """The table, and why it is away if it is and the rule goes on without. StoreAway if the rule does not."""
    columns = columns_wanted(step, context)
    file = kept(spark, step, lambda: WatchedFile(str(step.path), step.key, columns, step.refresh))
    pause, deadline = asking.FIRST_PAUSE_SECONDS, time.monotonic() + asking.WAIT_SECONDS
    while True:
        try:
            return file.current(spark), None
        except StoreAway as error:
            if file.last is not None and step.away in ("stale", "null", "dead-letter"):
                return file.last, None if step.away == "stale" else str(error)
            if step.away == "fail" or time.monotonic() > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, asking.PAUSE_SECONDS)

"""The steps that are one call of Spark's: filter, select, add and drop. Hidden columns stay whatever is chosen."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.steps import AddStep, DropStep, FilterStep, SelectStep
from millstream.pipelines.spark.rows import HIDDEN, visible
from millstream.pipelines.spark.steps.analysis import must_have, quoted
from millstream.pipelines.spark.steps.context import StepContext


def apply_filter(rows: DataFrame, step: FilterStep, _: StepContext) -> DataFrame:
    return rows.where(step.where)


def apply_select(rows: DataFrame, step: SelectStep, _: StepContext) -> DataFrame:
    chosen: list[str] = []
    for column in step.columns:
        chosen += map(quoted, visible(rows)) if column.strip() == "*" else [column]
    return rows.selectExpr(*chosen, *(name for name in HIDDEN if name in rows.columns))


def apply_add(rows: DataFrame, step: AddStep, _: StepContext) -> DataFrame:
    """One after the other, so that a column can use the one before it."""
    for name, expression in step.columns.items():
        rows = rows.withColumn(name, F.expr(expression))
    return rows


def apply_drop(rows: DataFrame, step: DropStep, context: StepContext) -> DataFrame:
    must_have(rows, step.columns, context.place)
    gone = {name.lower() for name in step.columns}
    return rows.select(*(F.col(quoted(name)) for name in rows.columns if name.lower() not in gone))

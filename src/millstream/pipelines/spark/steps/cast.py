"""Cast: other types for columns. What cannot be cast is an error of its row, and says which value of which column."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.steps import CastStep
from millstream.pipelines.spark.rows import ERROR
from millstream.pipelines.spark.steps.analysis import must_have, quoted
from millstream.pipelines.spark.steps.checks import first_error, unreadable
from millstream.pipelines.spark.steps.context import StepContext

STAGE = KIND = "cast"


def apply_cast(rows: DataFrame, step: CastStep, context: StepContext) -> DataFrame:
    must_have(rows, step.columns, context.place)
    kept = {name.lower(): name for name in rows.columns}
    casts = {kept[name.lower()]: type_ for name, type_ in step.columns.items()}
    before = {name: F.col(quoted(name)) for name in casts}
    after = {name: F.col(quoted(f"_cast_{name}")) for name in casts}
    checks = [unreadable(KIND, name, type_, before[name], after[name]) for name, type_ in casts.items()]
    # Two projections, so that a value is cast once and not again to find out whether that went well.
    cast = rows.withColumns({f"_cast_{name}": before[name].try_cast(type_) for name, type_ in casts.items()})
    columns = [
        after[name].alias(name) if name in casts else F.col(quoted(name)) for name in rows.columns if name != ERROR
    ]
    return cast.select(*columns, first_error(STAGE, checks))

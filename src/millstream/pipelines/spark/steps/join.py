"""Join: the stream with another source or a table, by columns of the same name or by a condition.

The result has the stream's columns, then the other's. Columns that both have and that are joined by appear once, with
the value of whichever side has the row; any other column that both have is an error, for it would have to be renamed
without a word. A row keeps its origin in a join with a table; out of two streams it has two, of which none is kept.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millstream.cluster.answers import nearest
from millstream.pipelines.description.pipeline import STREAM
from millstream.pipelines.description.steps import JoinStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import HIDDEN, visible, without_hidden
from millstream.pipelines.spark.steps import statement
from millstream.pipelines.spark.steps.analysis import must_have, quoted
from millstream.pipelines.spark.steps.context import StepContext

KINDS = {"inner": "inner", "left": "left", "right": "right", "full": "full", "semi": "left_semi", "anti": "left_anti"}


def apply_join(rows: DataFrame, step: JoinStep, context: StepContext) -> DataFrame:
    if step.with_ not in context.frames:
        near = nearest(step.with_, context.frames) or f": there are {', '.join(context.frames) or 'none'}"
        raise PipelineError(f"there is no source or table {step.with_}{near}", context.place)
    other = without_hidden(context.frames[step.with_])
    if rows.isStreaming and other.isStreaming:
        rows = without_hidden(rows)
    keys = _keys(step)
    if isinstance(step.on, str) and keys is None:
        return _by_condition(rows, other, step, context)
    for frame in (rows, other):
        must_have(frame, keys or (), context.place)
    return _by_columns(rows, other, keys or (), step, context)


def _keys(step: JoinStep) -> tuple[str, ...] | None:
    """The columns to join by, if it is names of columns that are given."""
    if not isinstance(step.on, str):
        return step.on
    name = step.on.strip()
    return (name,) if name.isidentifier() else None


def _by_columns(
    rows: DataFrame, other: DataFrame, keys: tuple[str, ...], step: JoinStep, context: StepContext
) -> DataFrame:
    _refuse_common(rows, other, keys, step, context)
    joined = rows.join(other, list(keys), KINDS[step.how])
    mine = {name.lower() for name in rows.columns}
    added = [name for name in joined.columns if name.lower() not in mine]
    return joined.select(*(F.col(quoted(name)) for name in (*rows.columns, *added)))


def _by_condition(rows: DataFrame, other: DataFrame, step: JoinStep, context: StepContext) -> DataFrame:
    left, right = rows.alias(STREAM), other.alias(step.with_)
    joined = left.join(right, F.expr(str(step.on)), KINDS[step.how])
    if step.how in ("semi", "anti"):
        return joined
    keys = statement.equal_columns(str(step.on), STREAM, step.with_)
    _refuse_common(rows, other, keys, step, context)
    same = {name.lower() for name in keys}
    return joined.select(
        *(_either(name, step) if name.lower() in same else F.col(f"{STREAM}.{quoted(name)}") for name in visible(rows)),
        *(F.col(f"{step.with_}.{quoted(name)}") for name in visible(other) if name.lower() not in same),
        *(F.col(f"{STREAM}.{name}") for name in HIDDEN if name in rows.columns),
    )


def _either(name: str, step: JoinStep) -> Column:
    """A column of both sides with equal values, from the side that has the row."""
    left, right = F.col(f"{STREAM}.{quoted(name)}"), F.col(f"{step.with_}.{quoted(name)}")
    if step.how == "right":
        return right
    return F.coalesce(left, right).alias(name) if step.how == "full" else left


def _refuse_common(
    rows: DataFrame, other: DataFrame, keys: tuple[str, ...], step: JoinStep, context: StepContext
) -> None:
    if step.how in ("semi", "anti"):
        return
    mine, same = {name.lower() for name in visible(rows)}, {name.lower() for name in keys}
    common = [name for name in visible(other) if name.lower() in mine - same]
    if common:
        raise PipelineError(
            f"the stream and {step.with_} both have the column{'s' * (len(common) > 1)} {', '.join(common)}: drop or "
            "rename one before the join (`select: x AS y`), or join with a `sql` step and name what you want",
            context.place,
        )

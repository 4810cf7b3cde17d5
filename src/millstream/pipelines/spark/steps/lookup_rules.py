"""What all look-ups share: how their columns come to the rows, and what must not be found out anew for each
micro-batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.pipelines.description.lookup import LookupStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import HIDDEN, ORIGIN, visible
from millstream.pipelines.spark.steps.analysis import quoted, schema_of
from millstream.pipelines.spark.steps.checks import Check, first_error, shown
from millstream.pipelines.spark.steps.context import StepContext

MISSING, AWAY, UNUSABLE = "lookup-missing", "lookup-away", "lookup-value"
"""The kinds of errors."""

T = TypeVar("T")


class _Kept:
    """Things by name, for as long as one Spark application lives."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._application = ""
        self._things: dict[str, Any] = {}

    def get(self, application: str, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if self._application != application:
                self._application = application
                self._things.clear()
            if name not in self._things:
                self._things[name] = make()
            found: T = self._things[name]
            return found


_kept = _Kept()


def kept(spark: SparkSession, step: LookupStep, make: Callable[[], T]) -> T:
    """What was made for a look-up of this content in this Spark application, or is made now."""
    return _kept.get(spark.sparkContext.applicationId, repr(step), make)


def columns_wanted(step: LookupStep, context: StepContext) -> StructType | None:
    """The columns, if they are given."""
    return None if step.columns is None else schema_of(step.columns, context.place, "columns")


def refuse_common(rows: DataFrame, added: Sequence[str], step: LookupStep, context: StepContext) -> None:
    """PipelineError if the rows have a column that the look-up adds."""
    there = {name.lower() for name in (*visible(rows), *HIDDEN)}
    common = [name for name in added if name.lower() in there]
    if common:
        raise PipelineError(
            f"look-up {step.name} adds the column{'s' * (len(common) > 1)} {', '.join(common)}, which the rows have "
            "already: choose others with `columns`, or drop or rename what is there",
            context.place,
        )


def key_of(step: LookupStep) -> Column:
    return F.expr(step.on).cast("string")


def is_missing(wrong: Column, key: Column, step: LookupStep) -> list[Check]:
    """The check for keys that the store does not have, if they shall be sent aside."""
    if step.missing != "dead-letter":
        return []
    message = F.when(key.isNull(), F.lit("the key is null")).otherwise(
        F.concat(F.lit("there is no key '"), shown(key), F.lit(f"' in {step.name}"))
    )
    return [Check(MISSING, wrong, message)]


def with_answers(
    rows: DataFrame, own: DataFrame, added: Mapping[str, Column], step: LookupStep, checks: Sequence[Check]
) -> DataFrame:
    """The columns that the rows had of their own, those that are added, and the hidden ones."""
    return rows.select(
        *(F.col(quoted(name)) for name in visible(own)),
        *(value.alias(name) for name, value in added.items()),
        *(name for name in own.columns if name == ORIGIN),
        first_error(step.name, checks),
    )

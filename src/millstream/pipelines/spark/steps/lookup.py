"""Look-up: the columns that a store has for a row's key.

What memory and files hold is joined with the rows (`lookup_joined`), which is plain SQL, also in real-time mode. SQL
databases and Redis are asked in Spark's workers (`lookup_asked`). Keys are compared as texts.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from millstream.pipelines.description.lookup import LookupStep
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.lookup_asked import apply_asked
from millstream.pipelines.spark.steps.lookup_joined import apply_joined


def apply_lookup(rows: DataFrame, step: LookupStep, context: StepContext) -> DataFrame:
    return (apply_asked if step.type in ("sql", "redis") else apply_joined)(rows, step, context)

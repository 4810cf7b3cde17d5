"""What may be wrong with a single row, as SQL expressions: checks, and the error that the first one that fails makes
of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from millstream.pipelines.spark import rows as hidden
from millstream.pipelines.spark.rows import ERROR, ERROR_TYPE

LONGEST_VALUE = 100
"""More of a bad value does not go into a message."""


class Check(NamedTuple):
    """The kind of error that it is, when a row has it, and what is said then."""

    kind: str
    wrong: Column
    message: Column


def unreadable(kind: str, column: str, type_: str, before: Column, after: Column) -> Check:
    """A value was there, and none came out."""
    message = F.concat(F.lit(f"column {column}: '"), shown(before), F.lit(f"' is not a value of type {type_}"))
    return Check(kind, before.isNotNull() & after.isNull(), message)


def shown(value: Column) -> Column:
    """A value in a message."""
    return F.left(value.cast("string"), F.lit(LONGEST_VALUE))


def first_error(stage: str, checks: Sequence[Check]) -> Column:
    """The column `_error`. One structure for all checks keeps the code that Spark makes of it small, which makes it
    fast."""
    if not checks:
        return hidden.no_error()
    kinds, messages = F.when(F.lit(False), F.lit("")), F.when(F.lit(False), F.lit(""))
    for check in checks:
        kinds = kinds.when(check.wrong, F.lit(check.kind))
        messages = messages.when(check.wrong, check.message)
    kind = kinds if len({check.kind for check in checks}) > 1 else F.lit(checks[0].kind)
    error = F.struct(F.lit(stage).alias("stage"), kind.alias("error"), messages.alias("message")).cast(ERROR_TYPE)
    return F.when(reduce(or_, (check.wrong for check in checks)), error).otherwise(hidden.no_error()).alias(ERROR)

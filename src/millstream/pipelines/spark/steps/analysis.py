"""What Spark says about a mistake in SQL or in names of columns, as one line that points to where it was written.

Spark's messages begin with an error class and end with the whole plan; a person needs what lies between, and the
columns that are there. PySpark logs such errors as JSON on its own as well, which is kept quiet while they are being
explained.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.cluster.answers import nearest
from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import HIDDEN, visible, visible_schema

MISTAKES = (AnalysisException, ParseException)
_CLASS = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+;?")
_SUGGESTIONS = re.compile(r"\s*Did you mean one of the following\? \[.*?\]\.")
_POSITION = re.compile(r"[;.]?\s*\(?line (\d+),? pos (\d+)\)?")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def reason(error: PySparkException) -> str:
    """Spark's reason in one line, without its error class and without its plan."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = _STATE.sub("", _SUGGESTIONS.sub("", _CLASS.sub("", lines[0] if lines else type(error).__name__)))
    position = _POSITION.search(text)
    where = f" (line {position[1]}, column {int(position[2]) + 1} of the SQL)" if position else ""
    return _POSITION.sub("", text).strip(" ;.") + where


@contextmanager
def explained(rows: DataFrame, place: Place | None) -> Iterator[None]:
    """Spark's complaints about what is done with these rows become a PipelineError at the place."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except MISTAKES as error:
        raise PipelineError(f"{reason(error)}. {columns_of(rows)}", place) from error
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def columns_of(rows: DataFrame) -> str:
    """The columns that are there, as a sentence."""
    fields = [f"{field.name} {field.dataType.simpleString()}" for field in visible_schema(rows).fields]
    return f"The columns are: {', '.join(fields)}" if fields else "There are no columns"


def must_have(rows: DataFrame, columns: Iterable[str], place: Place | None) -> None:
    """PipelineError if a column is not there."""
    there = {name.lower() for name in visible(rows)}
    for name in columns:
        if name.lower() not in there:
            near = nearest(name, visible(rows)) or "."
            raise PipelineError(f"there is no column {name}{near} {columns_of(rows)}", place)


def must_be_plain(rows: DataFrame, place: Place | None) -> None:
    """PipelineError if two columns have one name, or one a name that is kept for other uses."""
    seen: set[str] = set()
    for name in rows.columns:
        if name.lower() in seen:
            kept = f" ({name} is kept for the row's origin and error)" if name in HIDDEN else ""
            raise PipelineError(f"two columns are called {name}{kept}: give one of them another name", place)
        seen.add(name.lower())


def schema_of(ddl: str, place: Place | None, field: str) -> StructType:
    """Columns and types as written in DDL; PipelineError says what is wrong with them."""
    wanted = f"`{field}` must be columns with their types, such as `id bigint, name string`"
    try:
        found = StructType.fromDDL(ddl)
    except PySparkException as error:
        raise PipelineError(f"{wanted}: {reason(error)}", place) from error
    if not isinstance(found, StructType):
        raise PipelineError(f"{wanted}; this is a single type", place)
    return found


def quoted(name: str) -> str:
    """A column's name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"

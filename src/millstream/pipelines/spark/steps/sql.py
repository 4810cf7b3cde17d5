"""SQL: a SELECT over `stream`, the other sources and the tables. Its result is the new stream.

The names are temporary views only while Spark analyzes the statement: a DataFrame keeps its plan, not the names in
it. The rows' origin goes along where each row of the result comes from one row of the stream (`statement`); elsewhere
the statement sees the stream without hidden columns, so that `SELECT DISTINCT *` means the user's columns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from millstream.pipelines.description.pipeline import STREAM
from millstream.pipelines.description.steps import SqlStep
from millstream.pipelines.spark.rows import HIDDEN, without_hidden
from millstream.pipelines.spark.steps import statement
from millstream.pipelines.spark.steps.context import StepContext

_NAMES = threading.Lock()
"""Views belong to a session, which the pipelines of a process share while they are planned."""


def apply_sql(rows: DataFrame, step: SqlStep, context: StepContext) -> DataFrame:
    frames = {name: without_hidden(frame) for name, frame in context.frames.items() if name != STREAM}
    streaming = [name for name, frame in frames.items() if frame.isStreaming]
    hidden = [name for name in HIDDEN if name in rows.columns]
    sql = statement.with_stream_quoted(step.sql)
    with_hidden = statement.with_columns(sql, hidden, streaming) if hidden else None
    if with_hidden is not None:
        try:
            return _run(with_hidden, {STREAM: rows, **frames}, rows.sparkSession)
        except AnalysisException:
            pass  # an aggregate that sqlglot does not know, or a mistake: then Spark says so of the user's own words
    return _run(sql, {STREAM: without_hidden(rows), **frames}, rows.sparkSession)


def _run(sql: str, frames: Mapping[str, DataFrame], spark: SparkSession) -> DataFrame:
    with _NAMES, _views(frames, spark):
        return spark.sql(sql)


@contextmanager
def _views(frames: Mapping[str, DataFrame], spark: SparkSession) -> Iterator[None]:
    """The frames under their names in this session. Some were made in another one (a micro-batch has a clone of its
    own); a global view is what sessions have in common."""
    try:
        for name, frame in frames.items():
            passage = f"millstream_{uuid4().hex}"
            frame.createGlobalTempView(passage)
            try:
                spark.table(f"global_temp.{passage}").createOrReplaceTempView(name)
            finally:
                spark.catalog.dropGlobalTempView(passage)
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)

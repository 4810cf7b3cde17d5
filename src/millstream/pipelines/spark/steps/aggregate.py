"""Aggregate: groups of rows and what is computed of each, in all or per window of the event time.

A window's bounds become the plain columns `window_start` and `window_end`. `window_end` carries the watermark on, so
that the results can be joined with others; windows over the `window_start` of earlier results (hours out of minutes)
work as well. A result is made of many rows, so it has no origin.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.spans import span_text
from millstream.pipelines.description.steps import AggregateStep, Window
from millstream.pipelines.spark.steps.analysis import must_have, quoted
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.watermark import DELAY, delay_seconds, event_time

START, END = "window_start", "window_end"
_WINDOW = "_window"


def apply_aggregate(rows: DataFrame, step: AggregateStep, context: StepContext) -> DataFrame:
    computed = [F.expr(expression).alias(name) for name, expression in step.compute.items()]
    by = [F.expr(expression) for expression in step.by]
    if step.window is None:
        return rows.groupBy(*by).agg(*computed)
    must_have(rows, [step.window.column], context.place)
    rows = _marked(rows, step.window)
    marks = {DELAY: round((delay_seconds(rows) or 0) * 1000)} if event_time(rows) == step.window.column else {}
    grouped = rows.groupBy(window_of(step.window).alias(_WINDOW), *by).agg(*computed)
    rest = [F.col(quoted(name)) for name in grouped.columns if name != _WINDOW]
    bounds = [F.col(f"{_WINDOW}.start").alias(START), F.col(f"{_WINDOW}.end").alias(END, metadata=marks)]
    return grouped.select(*bounds, *rest)


def window_of(window: Window) -> Column:
    """Spark's window over the event time."""
    column = quoted(window.column)
    if window.gap is not None:
        return F.session_window(column, span_text(window.gap))
    assert window.size is not None  # the description sees to it
    slide = None if window.slide is None else span_text(window.slide)
    return F.window(column, span_text(window.size), slide)


def _marked(rows: DataFrame, window: Window) -> DataFrame:
    """Windows over the beginnings of earlier windows keep the watermark that their ends carry.

    That loses nothing: an earlier window is final when its end is behind the watermark, and the wider window which
    has its beginning in it ends no sooner.
    """
    if window.column != START or event_time(rows) != END:
        return rows
    mark = {DELAY: rows.schema[END].metadata[DELAY]}
    plain = [F.col(quoted(name)) for name in rows.columns if name not in (START, END)]
    return rows.select(F.col(START).alias(START, metadata=mark), F.col(END).alias(END, metadata={}), *plain)

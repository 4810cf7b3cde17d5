"""Python: a function from DataFrame to DataFrame. Further parameters are the sources and tables of their names.

The function sees the hidden columns; if it drops them, rows have no origin from there on.
"""

from __future__ import annotations

import inspect
from typing import Any

from pyspark.sql import DataFrame

from millstream.cluster.answers import nearest
from millstream.pipelines.description.references import further_parameters
from millstream.pipelines.description.steps import PythonStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import without_hidden
from millstream.pipelines.spark.steps import functions
from millstream.pipelines.spark.steps.analysis import MISTAKES
from millstream.pipelines.spark.steps.context import StepContext


def apply_python(rows: DataFrame, step: PythonStep, context: StepContext) -> DataFrame:
    name, function = functions.name_of(step.function), functions.load(step.function, context.place)
    wanted, optional = {}, _with_default(function)
    for parameter in further_parameters(function):
        if parameter not in context.frames:
            if parameter in optional:
                continue
            near = nearest(parameter, context.frames) or f": there are {', '.join(context.frames) or 'none'}"
            raise PipelineError(
                f"{name} has the parameter {parameter}, and there is no source or table of that name{near}",
                context.place,
            )
        wanted[parameter] = without_hidden(context.frames[parameter])
    try:
        result = function(rows, **wanted)
    except (*MISTAKES, PipelineError):
        raise  # Spark's reasons are explained like those of the other steps
    except Exception as error:
        raise PipelineError(f"{name} failed: {type(error).__name__}: {error}", context.place) from error
    if not isinstance(result, DataFrame):
        raise PipelineError(
            f"{name} must return a DataFrame; it returned {_kind(result)}{_hint(result)}", context.place
        )
    return result


def _with_default(function: Any) -> set[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {parameter.name for parameter in parameters if parameter.default is not parameter.empty}


def _kind(result: object) -> str:
    return "nothing" if result is None else f"a value of type {type(result).__name__}"


def _hint(result: object) -> str:
    return " (is a `return` missing?)" if result is None else ""

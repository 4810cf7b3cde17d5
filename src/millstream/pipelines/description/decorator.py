"""`@pipeline`: a function from DataFrame to DataFrame becomes the last step of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from millstream.pipelines.description.pipeline import BackPressure, Pipeline
from millstream.pipelines.description.sinks import AnySink
from millstream.pipelines.description.sources import AnySource, Table
from millstream.pipelines.description.step import Step


class PipelineFields(TypedDict, total=False):
    """All that a pipeline has beside its name; what it means is said there."""

    description: str
    source: AnySource
    sources: Mapping[str, AnySource]
    tables: Mapping[str, Table]
    steps: Sequence[Step | Callable[..., Any]]
    sinks: Sequence[AnySink]
    mode: Literal["auto", "real-time", "micro-batch", "once"]
    every: float | str
    real_time_batch: float | str
    output: Literal["auto", "append", "update", "complete"]
    dead_letters: str
    on_error: Literal["dead-letter", "fail"]
    back_pressure: BackPressure
    spark: Mapping[str, str]


def pipeline(name: str, **fields: Unpack[PipelineFields]) -> Callable[[Callable[..., Any]], Pipeline]:
    """Makes a pipeline of the function: `steps` come before it, `sinks` take what it returns.

    The function's first parameter is the stream. Further ones are given the sources and tables of their names.
    """

    def decorate(function: Callable[..., Any]) -> Pipeline:
        steps = [*fields.get("steps", ()), function]
        return Pipeline.model_validate({**fields, "name": name, "steps": steps})

    return decorate

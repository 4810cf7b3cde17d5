"""A pipeline in a few lines, for people: what `check` shows before Spark is asked. No secrets are in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from millstream.pipelines.description.document import Dumper
from millstream.pipelines.description.element import Element
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.references import reference_of
from millstream.pipelines.description.render import fields_of, step_of
from millstream.pipelines.description.secrets import without_secrets
from millstream.pipelines.description.spans import short_span

_WIDTH = 100


def describe(pipeline: Pipeline) -> list[str]:
    """A line for the pipeline and one for each of its parts."""
    meaning = f": {pipeline.description}" if pipeline.description else ""
    return [f"pipeline {pipeline.name}{meaning}", *(f"  {label:<11} {text}" for label, text in _parts(pipeline))]


def _parts(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if pipeline.source is not None:
        yield "source", _one_line(fields_of(pipeline.source, _called))
    for name, source in pipeline.sources.items():
        yield "source", f"{name}: {_one_line(fields_of(source, _called))}"
    for name, table in pipeline.tables.items():
        yield "table", f"{name}: {_one_line(fields_of(table, _called))}"
    for step in pipeline.steps:
        ((name, fields),) = step_of(step, _called).items()
        yield "step", f"{name}: {_one_line(fields)}"
    for sink in pipeline.sinks:
        yield "sink", _one_line(fields_of(sink, _called))
    yield "mode", pipeline.mode + (f", a batch at most every {short_span(pipeline.every)}" if pipeline.every else "")
    if pipeline.on_error == "fail":
        yield "bad records", "stop the pipeline"
    else:
        yield "bad records", f"go to the topic {pipeline.dead_letter_topic}"
    yield "progress", f"is committed to the consumer group {pipeline.group}"


def _called(code: Any, element: Element) -> str:
    return reference_of(code) or str(getattr(code, "__qualname__", code))


def _one_line(fields: Any) -> str:
    """As YAML in one line, cut off where it gets long."""
    shown = without_secrets(_without_line_breaks(fields))
    if isinstance(shown, Mapping):
        text = yaml.dump(
            shown, Dumper=Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf
        )
        text = text.strip().removeprefix("{").removesuffix("}")
    else:
        text = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _without_line_breaks(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {key: _without_line_breaks(item) for key, item in value.items()}
    return [_without_line_breaks(item) for item in value] if isinstance(value, list) else value

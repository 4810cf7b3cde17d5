"""What is wrong with a pipeline as a whole, found without Spark: names that lead nowhere, files that are not there,
parts that cannot go together.

The checks also work on a pipeline of which some parts are broken (`None`): all mistakes of a file come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.pipelines.description.document import Way
from millstream.pipelines.description.element import Element, Place
from millstream.pipelines.description.fields import is_local, is_schema_file, meant
from millstream.pipelines.description.locating import value_at, way_text
from millstream.pipelines.description.pipeline import STREAM, Pipeline
from millstream.pipelines.description.references import further_parameters, missing
from millstream.pipelines.description.sinks import Sink, TopicSink
from millstream.pipelines.description.sources import Source, Table, TopicSource
from millstream.pipelines.description.statements import table_mistakes
from millstream.pipelines.description.step import CodeStep, Step
from millstream.pipelines.description.steps import (
    STEPS,
    AggregateStep,
    DeduplicateStep,
    JoinStep,
    LookupStep,
    MapStep,
    PythonStep,
    SqlStep,
    StateStep,
    WatermarkStep,
)
from millstream.pipelines.errors import PipelineError, PipelineErrors

STEP_NAMES = {model: name for name, model in STEPS.items()}
_KEEPS_STATE = {AggregateStep: "an aggregation", DeduplicateStep: "de-duplication", StateStep: "stateful Python"}


@dataclass(frozen=True)
class Mistake:
    """The way to the field, what is wrong with it, and in which line of its text."""

    way: Way
    message: str
    line_of_text: int | None = None


@dataclass(frozen=True)
class Parts:
    """A pipeline, or what is left of one in which some parts are broken."""

    sources: Mapping[str, Source | None]
    tables: Mapping[str, Table | None]
    steps: Sequence[Step | None]
    sinks: Sequence[Sink | None]
    mode: str = "auto"
    output: str = "auto"
    several: bool = False
    """Whether the sources have names."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> Parts:
        return cls(
            pipeline.named_sources,
            pipeline.tables,
            pipeline.steps,
            pipeline.sinks,
            pipeline.mode,
            pipeline.output,
            several=pipeline.source is None,
        )

    @property
    def names(self) -> list[str]:
        """What steps can name."""
        return list(dict.fromkeys([STREAM, *self.sources, *self.tables]))

    def way_of_source(self, name: str) -> Way:
        return ("sources", name) if self.several else ("source",)

    def named_steps(self) -> Iterator[tuple[Way, Step]]:
        for index, step in enumerate(self.steps):
            if step is not None:
                yield ("steps", index, STEP_NAMES[type(step)]), step


def check(pipeline: Pipeline) -> None:
    """PipelineErrors if the pipeline cannot be; for one that was not read from a file."""
    found = [PipelineError(wrong.message, place_in(pipeline, wrong.way)) for wrong in mistakes(Parts.of(pipeline))]
    if found:
        raise PipelineErrors(sorted(found, key=lambda error: error.place.line if error.place else 0))


def place_in(pipeline: Pipeline, way: Way) -> Place | None:
    """The line that made the element a way leads to, and the field."""
    element: Any = pipeline
    place = pipeline.place
    for part in way:
        if isinstance(element, Mapping | tuple):
            element = value_at(element, (part,))
        else:
            element = getattr(element, str(part), None)
        if isinstance(element, Element):
            place = element.place
    return place and place._replace(field=way_text(way))


def mistakes(parts: Parts) -> Iterator[Mistake]:
    """All that is wrong, in no order."""
    yield from _names(parts)
    yield from _joins(parts)
    yield from _watermarks(parts)
    yield from _statements(parts)
    yield from _code(parts)
    yield from _files(parts)
    yield from _same_sinks(parts)
    if parts.mode == "real-time":
        yield from _real_time(parts)


def _names(parts: Parts) -> Iterator[Mistake]:
    for name in parts.tables:
        if name in parts.sources or name == STREAM:
            other = "of a source" if name in parts.sources else "under which steps find the rows of the step before"
            yield Mistake(("tables", name), f"`{name}` is already the name {other}: call the table otherwise")
    if STREAM in list(parts.sources)[1:]:
        yield Mistake(("sources", STREAM), f"`{STREAM}` are the rows of the first source: call this one otherwise")


def _joins(parts: Parts) -> Iterator[Mistake]:
    first, *others = [*parts.sources, *parts.tables]
    for way, step in parts.named_steps():
        if not isinstance(step, JoinStep) or step.with_ in others:
            continue
        if step.with_ in (STREAM, first):
            message = f"`{step.with_}` is the stream itself: name another source or a table"
        else:
            known = f"; there are {', '.join(others)}" if others else "; give it under `tables` or `sources`"
            message = f"there is no source or table `{step.with_}`{meant(step.with_, others) or known}"
        yield Mistake((*way, "with"), message)


def _watermarks(parts: Parts) -> Iterator[Mistake]:
    known = any(source is None or source.watermark for source in parts.sources.values())
    for index, step in enumerate(parts.steps):
        known = known or _may_set_watermark(step)
        if known:
            return
        if isinstance(step, DeduplicateStep) and step.within is not None:
            message = "this needs a watermark before it: `- watermark: EVENT_TIME_COLUMN, 10 minutes`"
            yield Mistake(("steps", index, "deduplicate", "within"), message)
        elif isinstance(step, AggregateStep) and parts.output == "append":
            message = "`append` writes results of an aggregation when they are final: it needs a watermark before it"
            yield Mistake(("output",), message)


def _may_set_watermark(step: Step | None) -> bool:
    """Python and SQL can, and a broken step could have been the one."""
    if isinstance(step, SqlStep):
        return "watermark" in step.sql.lower()
    return step is None or isinstance(step, WatermarkStep | PythonStep)


def _statements(parts: Parts) -> Iterator[Mistake]:
    for way, step in parts.named_steps():
        if isinstance(step, SqlStep):
            for line, message in table_mistakes(step.sql, parts.names):
                yield Mistake((*way, "sql"), message, line)


def _code(parts: Parts) -> Iterator[Mistake]:
    for way, step in parts.named_steps():
        if not isinstance(step, CodeStep):
            continue
        code = getattr(step, step.code)
        why = missing(code) if isinstance(code, str) else None
        if why is not None:
            yield Mistake((*way, step.code), why)
        elif isinstance(step, PythonStep):
            known = [name for name in parts.names if name != STREAM]
            for name in further_parameters(code, required=True):
                if name not in known:
                    close = meant(name, known) or f"; there are {', '.join(known) or 'none'}"
                    message = f"the function asks for `{name}`, but there is no source or table of this name{close}"
                    yield Mistake((*way, step.code), message)


def _files(parts: Parts) -> Iterator[Mistake]:
    for name, source in parts.sources.items():
        yield from _schema_file(parts.way_of_source(name), source)
    for name, table in parts.tables.items():
        yield from _schema_file(("tables", name), table)
    for index, sink in enumerate(parts.sinks):
        yield from _schema_file(("sinks", index), sink)
    for way, step in parts.named_steps():
        path = step.path if isinstance(step, LookupStep) else None
        if path is not None and is_local(path) and not Path(path).exists():
            yield Mistake((*way, "path"), f"there is no file {path}")


def _schema_file(way: Way, element: Element | None) -> Iterator[Mistake]:
    schema = getattr(element, "schema_", None)
    if schema and is_schema_file(schema) and is_local(schema) and not Path(schema).is_file():
        yield Mistake((*way, "schema"), f"there is no file {schema}")


def _same_sinks(parts: Parts) -> Iterator[Mistake]:
    for index, sink in enumerate(parts.sinks):
        if sink is not None and sink in parts.sinks[:index]:
            first = list(parts.sinks).index(sink)
            yield Mistake(("sinks", index), f"this is the same as sinks[{first}]: every row would be written twice")


def _real_time(parts: Parts) -> Iterator[Mistake]:
    """What can never be real-time; the rest is found out when Spark has seen it."""
    reasons = [*_real_time_sources(parts), *_real_time_steps(parts)]
    reasons += [
        f"{_called(sink)} (sinks[{index}]) takes batches"
        for index, sink in enumerate(parts.sinks)
        if sink is not None and not isinstance(sink, TopicSink)
    ]
    reasons += [
        f"exactly-once delivery (sinks[{index}]) needs a transaction for each batch"
        for index, sink in enumerate(parts.sinks)
        if isinstance(sink, TopicSink) and sink.delivery == "exactly-once"
    ]
    if reasons:
        yield Mistake(("mode",), f"real-time is not possible: {', '.join(reasons)}; `auto` takes it wherever it can")


def _real_time_sources(parts: Parts) -> Iterator[str]:
    if len(parts.sources) > 1:
        yield "there are several sources"
    for source in parts.sources.values():
        if isinstance(source, TopicSource) and source.end is not None:
            yield "the source has an end"
        elif source is not None and not isinstance(source, TopicSource):
            yield f"it reads topics only, not {_called(source)}"


def _real_time_steps(parts: Parts) -> Iterator[str]:
    for way, step in parts.named_steps():
        if type(step) in _KEEPS_STATE:
            yield f"{_KEEPS_STATE[type(step)]} ({way_text(way)}) keeps state"
        elif isinstance(step, MapStep):
            yield f"a Python function runs on the rows ({way_text(way)})"


def _called(element: Element) -> str:
    """`a database`, `files`."""
    kind = type(element).__name__.removesuffix("Sink").removesuffix("Source").lower()
    return kind if kind in ("files", "cassandra") else f"a {kind}"

"""Reads pipelines: from a YAML file, one for each document, or from a Python file, each `Pipeline` at its top level.

All mistakes of a YAML file are told at once, each with its line, its field and what would be right. Relative paths are
meant from the file's folder. A Python file is run, and ends at its first mistake as any program does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from millstream.pipelines.description import python_file
from millstream.pipelines.description.checks import Parts, mistakes
from millstream.pipelines.description.document import Document, Way, documents
from millstream.pipelines.description.element import Element, Place
from millstream.pipelines.description.fields import folder_of_file
from millstream.pipelines.description.locating import Spot, field_names, spot_of, value_at, way_text
from millstream.pipelines.description.pipeline import STREAM, Pipeline, step_from
from millstream.pipelines.description.sinks import AnySink
from millstream.pipelines.description.sources import AnySource, Table
from millstream.pipelines.description.step import Step
from millstream.pipelines.description.words import errors_of, given_words, message
from millstream.pipelines.errors import PipelineError, PipelineErrors

YAML_FILES, PYTHON_FILES = (".yaml", ".yml"), (".py",)
_HINTS = {
    "mapping values are not allowed here": "a text with `: ` in it must be quoted",
    "found character '\\t' that cannot start any token": "indent with spaces, not with a tab",
    "found character '`' that cannot start any token": "a text that begins with ` must be quoted",
    "expected ',' or '}', but got '{'": "between braces, `${NAME}` must be quoted",
    "found character '@' that cannot start any token": "a text that begins with @ must be quoted",
    "found character '%' that cannot start any token": "a text that begins with % must be quoted",
}


def read(path: Path, environ: Mapping[str, str] = os.environ) -> list[Pipeline]:
    """The pipelines of a file, in its order; PipelineErrors lists all that is wrong with it."""
    file = str(path)
    if path.suffix not in (*YAML_FILES, *PYTHON_FILES):
        raise PipelineError(f"{file} is not a pipeline's file: their names end in .yaml, .yml or .py")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PipelineError(f"there is no file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} cannot be read: {error}") from None
    with folder_of_file(path.parent):
        pipelines = python_file.pipelines(path) if path.suffix in PYTHON_FILES else _from_yaml(text, file, environ)
    errors = list(_same_names(pipelines))
    if errors:
        raise PipelineErrors(errors)
    return pipelines


def _same_names(pipelines: list[Pipeline]) -> Iterator[PipelineError]:
    first: dict[str, Pipeline] = {}
    for pipeline in pipelines:
        other = first.setdefault(pipeline.name, pipeline)
        if other is not pipeline:
            line = f"line {other.place.line}" if other.place else "this file"
            yield PipelineError(f"a pipeline of the name {pipeline.name} is already in {line}", pipeline.place)


def _from_yaml(text: str, file: str, environ: Mapping[str, str]) -> list[Pipeline]:
    pipelines, errors = [], []
    try:
        for document in documents(text, environ):
            reading = _Reading(document, file)
            pipeline = reading.pipeline()
            errors += reading.errors
            if pipeline is not None:
                pipelines.append(pipeline)
    except yaml.YAMLError as error:
        errors.append(_syntax_error(error, file))
    if not (pipelines or errors):
        raise PipelineErrors([PipelineError("there is no pipeline in this file", Place(file, 1))])
    if errors:
        raise PipelineErrors(sorted(errors, key=lambda error: error.place.line if error.place else 0))
    return pipelines


def _syntax_error(error: yaml.YAMLError, file: str) -> PipelineError:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error)
    hint = _HINTS.get(problem)
    text = f"{problem}; {hint}" if hint else problem
    if mark is None:
        return PipelineError(f"this is not YAML: {text}", Place(file, 1))
    return PipelineError(f"this is not YAML (column {mark.column + 1}): {text}", Place(file, mark.line + 1))


class _Reading:
    """One document on its way to a pipeline."""

    def __init__(self, document: Document, file: str) -> None:
        self._document = document
        self._file = file
        self._wrong: dict[Way, list[PipelineError]] = {}
        for line, way, text in document.wrong:
            self._add(way, text, line)

    @property
    def errors(self) -> list[PipelineError]:
        return [error for errors in self._wrong.values() for error in errors]

    def pipeline(self) -> Pipeline | None:
        data = self._document.data
        if not isinstance(data, Mapping):
            self._add((), f"a pipeline is a list of fields (`pipeline: NAME`, `source: …`), not {given_words(data)}")
            return None
        pipeline = self._validated(data)
        broken = set(self._wrong)
        for mistake in mistakes(Parts.of(pipeline) if pipeline is not None else _parts(data)):
            if mistake.way not in broken:
                self._add_found(mistake.way, mistake.message, mistake.line_of_text)
        if self._wrong or pipeline is None:
            return None
        for way, element in elements(pipeline):
            self._place(way, element)
        return pipeline

    def _validated(self, data: Any) -> Pipeline | None:
        while True:
            try:
                return Pipeline.model_validate(data)
            except ValidationError as error:
                found = [(spot_of(line["loc"], data), line) for line in errors_of(error)]
                if not self._as_texts(data, [spot.way for spot, line in found if line["type"] == "string_type"]):
                    self._add_validation(found)
                    return None

    def _as_texts(self, data: Any, ways: list[Way]) -> bool:
        """A number where a text belongs is the text that stands there; whether there was any."""
        changed = False
        for way in map(self._document.known, ways):
            text = self._document.texts.pop(way, "")
            if text and value_at(data, way) is not None:
                value_at(data, way[:-1])[way[-1]] = text
                changed = True
        return changed

    def _add_validation(self, found: list[tuple[Spot, Any]]) -> None:
        by_way: dict[Way, list[tuple[Spot, Any]]] = {}
        for spot, line in found:
            by_way.setdefault(self._without_index(spot.way), []).append((spot, line))
        for way, lines in by_way.items():
            spot, line = next((item for item in lines if item[1]["type"] == "value_error"), lines[0])
            kind = "union" if len(lines) > 1 and line["type"] != "value_error" else line["type"]
            names = field_names(spot.owner) if spot.owner is not None else []
            at_key = spot.at_key or kind == "missing"
            wanted = spot.wanted if way == spot.way else replace(spot, inside=False).wanted
            if way in self._document.lines:
                line = {**line, "input": value_at(self._document.data, way)}  # as it stands there
            if way not in self._wrong:  # what follows from a variable that is not set, or a name that stands twice
                self._add(way, message(kind, line, spot.field, wanted, names), self._document.line(way, at_key))

    def _without_index(self, way: Way) -> Way:
        """A single value can stand for a list of one."""
        while way and isinstance(way[-1], int) and way not in self._document.lines:
            way = way[:-1]
        return way

    def _add_found(self, way: Way, text: str, line_of_text: int | None) -> None:
        way = self._document.known(way) if way not in self._document.lines and len(way) > 3 else way
        line = self._document.line(way)
        lines = self._document.lines.get(way)
        if line_of_text is not None and lines is not None and lines.text is not None:
            line = lines.text + line_of_text - 1
        self._add(way, text, line)

    def _add(self, way: Way, text: str, line: int | None = None) -> None:
        place = Place(self._file, line or self._document.line(way), way_text(way))
        self._wrong.setdefault(way, []).append(PipelineError(text, place))

    def _place(self, way: Way, element: Element) -> None:
        here = self._document.known(way)
        line = self._document.line((*here, "pipeline") if not way else here, at_key=True)
        element.at(Place(self._file, line, way_text(way)), dict(self._written(here, element)))

    def _written(self, way: Way, element: Element) -> Iterator[tuple[Way, str]]:
        """Texts with variables that the element holds as they came out; others were made into something else."""
        given = value_at(self._document.data, way)
        short = (element.short,) if isinstance(element, Step) and element.short and element.is_short(given) else ()
        for place, text in self._document.written.items():
            inside = (*short, *place[len(way) :])
            if inside and place[: len(way)] == way:
                field, value = content_at(element, inside)
                if value in (value_at(self._document.data, place), (value_at(self._document.data, place),)):
                    yield (field, *inside[1:]), text


def content_at(element: Element, way: Way) -> tuple[str, Any]:
    """What an element holds at the end of a way, and the first field's name as it is written."""
    for name, field in type(element).model_fields.items():
        if way[0] in (name, field.alias):
            return field.alias or name, value_at(getattr(element, name), way[1:])
    return "", None


def elements(pipeline: Pipeline) -> Iterator[tuple[Way, Element]]:
    """All elements of a pipeline, with the ways to them; the pipeline itself first."""
    yield (), pipeline
    if pipeline.source is not None:
        yield ("source",), pipeline.source
    yield from ((("sources", name), source) for name, source in pipeline.sources.items())
    yield from ((("tables", name), table) for name, table in pipeline.tables.items())
    for way, step in Parts.of(pipeline).named_steps():
        yield way, step
        window = getattr(step, "window", None)
        if window is not None:
            yield (*way, "window"), window
    yield from ((("sinks", index), sink) for index, sink in enumerate(pipeline.sinks))
    yield ("back_pressure",), pipeline.back_pressure


_SOURCE: TypeAdapter[Any] = TypeAdapter(AnySource)
_SINK: TypeAdapter[Any] = TypeAdapter(AnySink)


def _parts(data: Mapping[str, Any]) -> Parts:
    """What is sound in the data of a pipeline that is not."""
    sources, tables = data.get("sources"), data.get("tables")
    steps, sinks = data.get("steps"), data.get("sinks")
    named = sources if isinstance(sources, Mapping) and sources else {STREAM: data.get("source")}
    tables = tables if isinstance(tables, Mapping) else {}
    return Parts(
        {name: _sound(_SOURCE.validate_python, given) for name, given in named.items()},
        {name: _sound(Table.model_validate, given) for name, given in tables.items()}
        if isinstance(tables, Mapping)
        else {},
        [_sound(step_from, given) for given in steps] if isinstance(steps, list) else [],
        [_sound(_SINK.validate_python, given) for given in sinks] if isinstance(sinks, list) else [],
        str(data.get("mode")),
        str(data.get("output")),
        several=isinstance(sources, Mapping),
    )


def _sound(make: Any, given: Any) -> Any:
    try:
        return make(given)
    except ValueError:  # pydantic's is one
        return None

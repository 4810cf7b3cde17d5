"""Pipelines in a Python file: every `Pipeline` at its top level, in the order in which they stand there.

The file is run as a program's module would be. What it raises is told with the line of the file in which it happened;
mistakes in a description in the words of the YAML reader.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from pydantic import BaseModel, ValidationError

from millstream.pipelines.description.checks import check
from millstream.pipelines.description.element import Place
from millstream.pipelines.description.locating import field_names, spot_in_model, spot_of
from millstream.pipelines.description.pipeline import BackPressure, Pipeline
from millstream.pipelines.description.references import load_file
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES, Table
from millstream.pipelines.description.steps import STEPS, Window
from millstream.pipelines.description.words import errors_of, message
from millstream.pipelines.errors import PipelineError, PipelineErrors

_ALL: list[type[BaseModel]] = [
    *SOURCES.values(),
    *SINKS.values(),
    *STEPS.values(),
    Table,
    Window,
    BackPressure,
    Pipeline,
]
_MODELS = {model.__name__: model for model in _ALL}


def pipelines(path: Path) -> list[Pipeline]:
    """The pipelines of a file; PipelineErrors if it does not run, has none, or one cannot be."""
    try:
        module = load_file(path)
    except SyntaxError as error:
        place = Place(error.filename or str(path), error.lineno or 1)
        raise PipelineErrors(
            [PipelineError(f"this is not Python (column {error.offset}): {error.msg}", place)]
        ) from None
    except ValidationError as error:
        raise PipelineErrors(_in_words(error, _line_of(error, path))) from None
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineErrors([PipelineError(f"{type(error).__name__}: {error}", _line_of(error, path))]) from error
    found: dict[int, Pipeline] = {id(item): item for item in vars(module).values() if isinstance(item, Pipeline)}
    if not found:
        raise PipelineErrors([PipelineError("there is no Pipeline at the top level of this file", Place(str(path), 1))])
    errors: list[PipelineError] = []
    for pipeline in found.values():
        try:
            check(pipeline)
        except PipelineErrors as wrong:
            errors += wrong.errors
    if errors:
        raise PipelineErrors(errors)
    return list(found.values())


def _line_of(error: BaseException, path: Path) -> Place:
    """The last line of the file that took part in it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return Place(str(path), (lines or [1])[-1] or 1)


def _in_words(error: ValidationError, place: Place) -> list[PipelineError]:
    model = _MODELS.get(error.title)
    if model is None:  # a model of the user's own
        return [PipelineError(str(error), place)]
    found: dict[str, PipelineError] = {}
    for line in errors_of(error):
        spot = spot_of(line["loc"], None) if model is Pipeline else spot_in_model(line["loc"], model)
        names = field_names(spot.owner) if spot.owner is not None else []
        text = message(line["type"], line, spot.field, spot.wanted, names)
        name = f"{error.title}.{spot.name}".rstrip(".")
        found.setdefault(name, PipelineError(text, place._replace(field=name)))
    return list(found.values())

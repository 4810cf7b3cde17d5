"""A pipeline as the YAML one would write for it, from which `read` makes the same pipeline again.

What is as by default is left out, a step with one plain value is short, code is named by where it is, and a text that
came with `${NAME}` in it keeps that, so that no password is written down that was not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from millstream.pipelines.description.checks import STEP_NAMES
from millstream.pipelines.description.document import STR, Dumper, Way
from millstream.pipelines.description.element import Element
from millstream.pipelines.description.fields import Words
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.references import reference_of
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES
from millstream.pipelines.description.spans import parse_span, short_span
from millstream.pipelines.description.step import Step
from millstream.pipelines.description.variables import escaped
from millstream.pipelines.errors import PipelineError

_TELLING: dict[type[Element], str] = {model: tag for kinds in (SOURCES, SINKS) for tag, model in kinds.items()}
_SPAN = Words("a length of time")

Naming = Callable[[Any, Element], str]
"""What to write for code: its function or class, and the step it is in."""


def as_dict(pipeline: Pipeline) -> dict[str, Any]:
    """What stands in the file; PipelineError if code in it cannot be named."""
    return fields_of(pipeline, _reference)


def as_yaml(pipeline: Pipeline) -> str:
    text: str = yaml.dump(as_dict(pipeline), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def _reference(code: Any, element: Element) -> str:
    reference = reference_of(code)
    if reference is None:
        raise PipelineError(
            f"{getattr(code, '__qualname__', code)} has no name by which another process could find it: define it at "
            "the top of a module",
            element.place,
        )
    return reference


def fields_of(element: Element, naming: Naming) -> dict[str, Any]:
    """The fields that are not as by default; first the one that tells what it is."""
    found: dict[str, Any] = {}
    telling = _TELLING.get(type(element))
    for name, field in type(element).model_fields.items():
        value, written = getattr(element, name), field.alias or name
        default = not field.is_required() and value == field.get_default(call_default_factory=True)
        if not default or (written == telling and value != ()):
            found[written] = _field(element, (written,), value, field, naming)
    return {telling: found[telling], **found} if telling in found else found


def step_of(step: Step, naming: Naming) -> dict[str, Any]:
    """A step in a list of steps, short if it can be."""
    name, fields = STEP_NAMES[type(step)], fields_of(step, naming)
    short = step.short
    if short is not None and list(fields) == [short] and step.is_short(fields[short]):
        return {name: fields[short]}
    return {name: fields}


def _field(element: Element, way: Way, value: Any, field: FieldInfo, naming: Naming) -> Any:
    if isinstance(value, Step):
        return step_of(value, naming)
    if isinstance(value, Element):
        return fields_of(value, naming)
    if isinstance(value, float) and _is_span(field):
        text = short_span(value)
        return text if parse_span(text) == value else value
    if isinstance(value, tuple) and len(value) == 1 and _is_one_or_many(field):
        return _value(element, (*way, 0) if (*way, 0) in element.written else way, value[0], naming)
    if isinstance(value, Mapping) and any(isinstance(item, Element) for item in value.values()):
        return {name: fields_of(item, naming) for name, item in value.items()}
    if isinstance(value, tuple) and any(isinstance(item, Element) for item in value):
        return [_field(element, way, item, field, naming) for item in value]
    return _value(element, way, value, naming)


def _value(element: Element, way: Way, value: Any, naming: Naming) -> Any:
    if way in element.written:
        return element.written[way]
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {key: _value(element, (*way, str(key)), item, naming) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(element, (*way, index), item, naming) for index, item in enumerate(value)]
    return naming(value, element) if callable(value) else value


def _is_span(field: FieldInfo) -> bool:
    """Also one that may be missing, whose words are inside a union."""
    return _SPAN in field.metadata or repr(_SPAN) in repr(field.annotation)


def _is_one_or_many(field: FieldInfo) -> bool:
    return any(isinstance(item, Words) and " or a list of " in item.text for item in field.metadata)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(STR, text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)

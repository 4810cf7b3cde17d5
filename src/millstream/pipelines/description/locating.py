"""From pydantic's location of an error to the place in a YAML document and the field's declaration.

A location has more parts than the document: the kind of a source or sink, which the document does not spell, the field
that a step's short form stands for, and the members of a union. It may also end in a field that is not there.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from millstream.pipelines.description.document import Way
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import SINKS
from millstream.pipelines.description.sources import SOURCES, Table
from millstream.pipelines.description.steps import STEPS
from millstream.pipelines.description.words import field_words, type_words


@dataclass(frozen=True)
class Spot:
    """A place in a document (the way to it), and what is declared there."""

    way: Way
    field: FieldInfo | None = None
    owner: type[BaseModel] | None = None
    at_key: bool = False
    inside: bool = False
    """Whether it is a part of the field's value: one of a list, or of a mapping."""

    @property
    def wanted(self) -> str:
        """What the place takes, in words."""
        if self.field is None:
            return ""
        if self.inside:
            return type_words([kind for kind in get_args(container_of(self.field)) if kind is not ...][-1])
        return field_words(self.field)

    @property
    def name(self) -> str:
        """As one would say it: `steps[1].lookup.path`."""
        return way_text(self.way)


def way_text(way: Way) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).removeprefix(".")


def spot_of(loc: Way, data: Any) -> Spot:
    """Where an error in a pipeline's data is."""
    if not loc:
        return Spot(())
    first, rest = loc[0], loc[1:]
    if first == "source":
        return _in_kind(data, ("source",), rest, SOURCES)
    if first in ("sources", "sinks") and rest and rest[0] != "[key]":
        return _in_kind(data, (first, rest[0]), rest[1:], SINKS if first == "sinks" else SOURCES)
    if first == "tables" and rest:
        return _in_model(data, (first, rest[0]), rest[1:], Table)
    if first == "steps" and rest:
        return _in_step(data, (first, rest[0]), rest[1:])
    return _in_model(data, (), loc, Pipeline)


def spot_in_model(loc: Way, model: type[BaseModel]) -> Spot:
    """Where an error in a single element is."""
    return _in_model(None, (), loc, model)


def _in_kind(data: Any, way: Way, loc: Way, kinds: Mapping[str, type[BaseModel]]) -> Spot:
    if not loc:
        return Spot(way)
    if loc[0] == "[key]":
        return Spot(way, at_key=True)
    return _in_model(data, way, loc[1:], kinds[str(loc[0])])


def _in_step(data: Any, way: Way, loc: Way) -> Spot:
    if not loc:
        return Spot(way)
    name, rest = str(loc[0]), loc[1:]
    given = value_at(data, (*way, name))
    model = STEPS[name]
    if not rest or not model.is_short(given):
        return _in_model(data, (*way, name), rest, model)
    spot = _in_model(None, (), rest, model)
    spelt = spot.way[1:] if spot.way[0] == model.short else spot.way  # the short form does not spell its field
    return replace(spot, way=(*way, name, *spelt))


def _in_model(data: Any, way: Way, loc: Way, model: type[BaseModel]) -> Spot:
    if not loc:
        return Spot(way, owner=model)
    if loc[0] == "[key]":
        return Spot(way, at_key=True)
    name, rest = loc[0], loc[1:]
    field = field_named(model, str(name))
    if field is None:
        return Spot((*way, name), owner=model, at_key=True)
    way = (*way, _as_written(model, field, value_at(data, way)))
    inner = _model_in(field)
    if inner is not None:
        spot = _in_model(data, way, rest, inner)
        return spot if rest else Spot(way, field, model)
    inside = _into(field, rest)
    return Spot((*way, *inside), field, model, at_key="[key]" in rest, inside=bool(inside))


def _into(field: FieldInfo, loc: Way) -> Way:
    """The way inside a field's value: names of a mapping and numbers of a list, without a union's members."""
    return tuple(part for part in loc if part != "[key]") if container_of(field) is not None else ()


def container_of(field: FieldInfo) -> Any:
    """The type of a field that takes a list or mapping, or nothing; None for others, also for a choice of several."""
    kinds = [field.annotation, *get_args(field.annotation)]
    choices = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    if get_origin(field.annotation) in (Union, types.UnionType) and len(choices) > 1:
        return None
    bare = [get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in kinds]
    return next((kind for kind in bare if get_origin(kind) in (dict, tuple)), None)


def _model_in(field: FieldInfo) -> type[BaseModel] | None:
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _as_written(model: type[BaseModel], field: FieldInfo, given: Any) -> str:
    """The name under which a field stands in the data: its alias, as a rule."""
    name = next(key for key, other in model.model_fields.items() if other is field)
    return name if isinstance(given, Mapping) and name in given else field.alias or name


def field_named(model: type[BaseModel], name: str) -> FieldInfo | None:
    """A field by the name it is written with."""
    for key, field in model.model_fields.items():
        if name in (key, field.alias):
            return field
    return None


def field_names(model: type[BaseModel]) -> list[str]:
    """The names of a model's fields as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def value_at(data: Any, way: Way) -> Any:
    """What stands in the data at the end of a way; None if the way leads nowhere."""
    for part in way:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data

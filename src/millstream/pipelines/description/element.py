"""The base of every element of a description: frozen, strict about names, and aware of where it was written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Discriminator, PrivateAttr

from millstream.pipelines.description.secrets import without_secrets

_OURS = ("millstream.pipelines.", "pydantic.")
"""Modules whose frames are not the user's."""


class Place(NamedTuple):
    """Where something was written: a file, a line from 1 on, and the field as one would say it (`steps[1].path`)."""

    file: str
    line: int
    field: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f": {self.field}" if self.field else "")


class Element(BaseModel):
    """A part of a pipeline. Equality is by content: the place, and how a value was written, do not count."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )

    _place: Place | None = PrivateAttr(default=None)
    _written: Mapping[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        self._place = _place_of_caller()

    @property
    def place(self) -> Place | None:
        """Where it was written: in a YAML file, or the line of the program that made it."""
        return self._place

    @property
    def written(self) -> Mapping[tuple[str | int, ...], str]:
        """Texts with `${NAME}` in them, as they stood in the file, by field and the way into it."""
        return self._written

    def at(self, place: Place, written: Mapping[tuple[str | int, ...], str] | None = None) -> None:
        """Remembers where and how it was written; the reader's privilege."""
        self._place = place
        self._written = written or {}

    def content(self) -> dict[str, Any]:
        """What makes two elements equal."""
        return self.__dict__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and type(self) is type(other) and self.content() == other.content()

    def __hash__(self) -> int:
        """Of what can be hashed; mappings do not count, so that equal elements have equal hashes."""
        return hash((type(self), *(_hash(value) for value in self.content().values())))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only what differs from the default, and no secrets."""
        for name, value in super().__repr_args__():
            field = type(self).model_fields.get(name or "")
            if field is None or field.is_required() or value != field.get_default(call_default_factory=True):
                yield name, without_secrets(value, name or "")


def _hash(value: Any) -> int:
    try:
        return hash(value)
    except TypeError:
        return 0


def _place_of_caller() -> Place | None:
    """The line of the program, outside of this package, that is making an element."""
    frame = sys._getframe(2)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_OURS):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


def kind_by_field(kinds: Mapping[str, type[Element]], synonyms: Mapping[str, str] | None = None) -> Discriminator:
    """Which of several elements is meant: the one whose telling field is there."""
    by_class = {element: tag for tag, element in kinds.items()}
    telling = {**{tag: tag for tag in kinds}, **(synonyms or {})}

    def tag_of(given: Any) -> str | None:
        if isinstance(given, Mapping):
            return next((tag for field, tag in telling.items() if field in given), None)
        return by_class.get(type(given))

    return Discriminator(
        tag_of,
        custom_error_type="no_kind",
        custom_error_message=f"this does not say what it is: one of the fields {', '.join(telling)} must be there",
    )

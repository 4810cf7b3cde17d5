"""The kinds of values that fields take: how each is written, what is kept of it, and what it is called.

A field may be written in more ways than it is kept: `within: 10 minutes` is kept as 600 seconds, `by: id` as `("id",)`.
For type checkers such a field is a descriptor (`Written`), so that a constructor takes the one and an attribute gives
the other; at run time it is what pydantic validates. `Words` says what a value is called in messages and in the docs.

Paths are kept absolute. What is relative is meant from the folder of the file that is being read (`folder_of_file`), or
from the working folder for an element that is made in a program.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator

from millstream.cluster.positions import parse_time
from millstream.pipelines.description.spans import parse_span

_Given = TypeVar("_Given")
_Kept = TypeVar("_Kept")
_FOLDER: ContextVar[Path | None] = ContextVar("folder", default=None)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
SCHEMA_FILES = (".avsc", ".json", ".ddl")
"""A schema that ends like this is a file, anything else are columns in Spark's DDL."""


@dataclass(frozen=True)
class Words:
    """What a value is called: `must be a length of time`."""

    text: str


@contextmanager
def folder_of_file(folder: Path) -> Iterator[None]:
    """Relative paths are meant from this folder."""
    token = _FOLDER.set(folder.absolute())
    try:
        yield
    finally:
        _FOLDER.reset(token)


def absolute(path: str) -> str:
    """The path from the root; a URL (`hdfs://…`, `s3a://…`) stays as it is."""
    if _SCHEME.match(path):
        return path
    return os.path.normpath((_FOLDER.get() or Path.cwd()) / Path(path).expanduser())


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean `X`?` if one of the known names is close, else nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean `{found[0]}`?" if found else ""


def is_schema_file(schema: str) -> bool:
    return schema.endswith(SCHEMA_FILES)


def is_local(path: str) -> bool:
    """Whether the path is on this machine, so that it can be looked at."""
    return not _SCHEME.match(path)


def as_names(value: Any) -> Any:
    """One thing where several are possible."""
    return value if isinstance(value, list | tuple) or value is None else (value,)


def seconds(text: str | None) -> Any:
    """A default for a `Span`."""
    return None if text is None else parse_span(text)


def names(*given: str) -> Any:
    """A default for `Names`."""
    return given


def _schema(value: str) -> str:
    return absolute(value) if is_schema_file(value) else value


def _topic(value: str) -> str:
    if not _TOPIC.fullmatch(value) or value in (".", ".."):
        raise ValueError(
            f"{value!r} cannot be a topic's name: letters, digits, `.`, `_` and `-` can be in it, at most 249 of them"
        )
    return value


def _table_name(value: str) -> str:
    if not (value.isidentifier() and value.isascii()):
        raise ValueError(f"{value!r} cannot be a table's name in SQL: use letters, digits and `_`")
    return value


def _position(value: Any) -> Any:
    if isinstance(value, str) and value not in ("earliest", "latest") and parse_time(value) is None:
        raise ValueError(
            f"{value!r} is no position: write earliest, latest, a moment (2026-01-31T12:00:00Z) or the offsets "
            "(TOPIC: {PARTITION: OFFSET})"
        )
    return value


def _watermark(value: str) -> str:
    split_watermark(value)
    return value


def split_watermark(value: str) -> tuple[str, float]:
    """`event_time, 10 minutes` -> the column and the delay in seconds; ValueError says what is wrong."""
    column, comma, delay = (part.strip() for part in value.partition(","))
    if not (column and comma):
        raise ValueError(
            f"{value!r} is no watermark: write the column and how late rows may be: event_time, 10 minutes"
        )
    return column, parse_span(delay)


if TYPE_CHECKING:

    class Written(Generic[_Given, _Kept]):
        """A field that a constructor takes as `_Given` and an attribute gives as `_Kept`."""

        def __get__(self, instance: object, owner: type) -> _Kept: ...
        def __set__(self, instance: object, value: _Given) -> None: ...

    Span = Written[float | str, float]
    MaybeSpan = Written[float | str | None, float | None]
    Names = Written[str | Sequence[str], tuple[str, ...]]
    Match = Written[str | Sequence[str], str | tuple[str, ...]]
    TopicNames = Written[str | Sequence[str], tuple[str, ...]]
    FilePaths = Written[str | Sequence[str], tuple[str, ...]]
else:
    Span = Annotated[float, BeforeValidator(parse_span), Words("a length of time")]
    MaybeSpan = Annotated[float, BeforeValidator(parse_span), Words("a length of time")] | None
    Names = Annotated[tuple[str, ...], BeforeValidator(as_names), Words("a name or a list of names")]
    Match = Annotated[str | tuple[str, ...], Words("a list of columns or a SQL condition")]
    TopicNames = Annotated[
        tuple[Annotated[str, AfterValidator(_topic)], ...],
        BeforeValidator(as_names),
        Words("a topic or a list of topics"),
    ]
    FilePaths = Annotated[
        tuple[Annotated[str, AfterValidator(absolute)], ...],
        BeforeValidator(as_names),
        Words("a path or a list of paths"),
    ]

FilePath = Annotated[str, AfterValidator(absolute), Words("a path")]
TopicName = Annotated[str, AfterValidator(_topic), Words("a topic")]
TableName = Annotated[str, AfterValidator(_table_name), Words("a name")]
Sql = Annotated[str, Words("SQL")]
Columns = Annotated[str, Words("columns (DDL)")]
Schema = Annotated[str, AfterValidator(_schema), Words("columns (DDL) or a file")]
Watermark = Annotated[str, AfterValidator(_watermark), Words("a column and a length of time")]
Options = Annotated[dict[str, str], Words("options by name")]
Position = Annotated[
    str | dict[str, dict[int, int]], AfterValidator(_position), Words("`earliest`, `latest`, a moment or offsets")
]
"""`earliest`, `latest`, a moment (`2026-01-31T12:00:00Z`), or offsets by topic and partition."""

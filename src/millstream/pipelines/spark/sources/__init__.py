"""Where rows come from: one reader for each kind of source, found by the class of its description.

A reader's module is imported when its source is first asked for: Spark's Python workers import from this package, and
have no use for most of it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from millstream.pipelines.description.sources import (
    DatabaseSource,
    FilesSource,
    GeneratorSource,
    Source,
    TailSource,
    TopicSource,
)

if TYPE_CHECKING:
    from millstream.pipelines.spark.context import Context
    from millstream.pipelines.spark.sources.reader import Reader

    MakeReader = Callable[[Any, str, Context], Reader]


def _reader(module: str, name: str) -> MakeReader:
    def make(source: Any, source_name: str, context: Context) -> Reader:
        found: MakeReader = getattr(import_module(f"{__name__}.{module}"), name)
        return found(source, source_name, context)

    return make


READERS: dict[type[Source], MakeReader] = {
    TopicSource: _reader("topic", "TopicReader"),
    DatabaseSource: _reader("database", "DatabaseReader"),
    FilesSource: _reader("files", "FilesReader"),
    TailSource: _reader("tail", "TailReader"),
    GeneratorSource: _reader("generate", "GeneratorReader"),
}
"""The class of a source -> what makes its reader of the source, its name and the context."""

"""What a sink is called: in metrics, in error messages, in ledgers. The same in every run, and readable."""

from __future__ import annotations

import hashlib

from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import SINKS, Sink

_PLACES: dict[str, tuple[str, ...]] = {"database": ("table",), "cassandra": ("keyspace", "table"), "console": ()}
"""Tag of a sink -> the fields that tell where its rows go; the field of the tag itself if it is not here."""


def sink_name(pipeline: Pipeline, index: int) -> str:
    """`topic-fraudip`, `table-warehouse.fraud`; the index is added where the name alone would be an earlier sink's."""
    name = _plain_name(pipeline.sinks[index])
    taken = {_plain_name(sink) for sink in pipeline.sinks[:index]}
    return f"{name}-{index}" if name in taken else name


def short_hash(*parts: str, length: int = 10) -> str:
    """For names of tables, files and the like that belong to something with a longer name."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:length]


def owner_of(pipeline: Pipeline, sink: Sink) -> str:
    """A short name for the sink in this pipeline that no other sink has."""
    index = next((i for i, other in enumerate(pipeline.sinks) if other is sink), -1)
    return short_hash(pipeline.name, _plain_name(sink), str(index))


def _plain_name(sink: Sink) -> str:
    tag = next(tag for tag, kind in SINKS.items() if isinstance(sink, kind))
    fields = _PLACES.get(tag, (tag,))
    place = ".".join(str(getattr(sink, field)) for field in fields).rstrip("/").rpartition("/")[2]
    return f"{tag}-{place}" if place else tag

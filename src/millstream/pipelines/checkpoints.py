"""Spark's checkpoints, read without Spark.

    <checkpoint>/metadata       {"id": "<the query's id, for good>"}
    <checkpoint>/offsets/<n>    batch n is planned: `v1`, a line of JSON about the batch, then a line for each source
                                with the position at its end, in the source's own terms; `-` is none
    <checkpoint>/commits/<n>    batch n is done
    <checkpoint>/sources/<i>/0  where source i began; from topics with a zero byte and `v1` before it
    <checkpoint>/state/         what stateful steps remember

Micro-batches are planned first and done after; a real-time batch writes down what it has done at its end. Spark keeps
the last hundred batches or so. A position of a topic source is JSON: `{"clicks": {"0": 16, "1": 13}}`.

Checkpoints may lie where only Spark can look (`hdfs://`, `s3a://`): everything goes through a `FileSystem`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from millstream.pipelines.errors import PipelineError

VERSION = "v1"
NONE = "-"
TopicOffsets = dict[str, dict[int, int]]
"""Topic -> partition -> offset."""


class FileSystem(Protocol):
    """As much of a file system as checkpoints need."""

    def names(self, folder: str) -> list[str]:
        """What is in the folder; nothing if there is no such folder."""

    def read_text(self, file: str) -> str:
        """FileNotFoundError if there is no such file."""

    def remove(self, folder: str) -> None:
        """With all that is in it; nothing happens if there is no such folder."""


class LocalFiles:
    """This machine's; paths may be written as `file:` URLs."""

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(path.name for path in _path(folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read_text(self, file: str) -> str:
        return _path(file).read_text()

    def remove(self, folder: str) -> None:
        """First out of the way, then away: a removal that is broken off leaves no half of a checkpoint."""
        path = _path(folder)
        aside = path.with_name(f".{path.name}.removed")
        shutil.rmtree(aside, ignore_errors=True)
        if path.exists():
            path.replace(aside)
            shutil.rmtree(aside)


LOCAL_FILES = LocalFiles()


class PlannedBatch(NamedTuple):
    """What was written down of a batch: when it was planned, its watermark, and each source's position at its end."""

    number: int
    timestamp: int
    """Milliseconds since 1970."""
    watermark: int
    """Milliseconds since 1970; 0 is none."""
    offsets: list[str | None]
    """By the source's place in the plan, in the source's own terms; None: the source had nothing yet."""

    def topics(self) -> TopicOffsets:
        """The positions of all sources that are topics."""
        return merged(offset for offset in self.offsets if offset is not None)


class Checkpoint:
    """One query's checkpoint. Nothing is kept: every question looks."""

    def __init__(self, path: str, files: FileSystem = LOCAL_FILES) -> None:
        self.path = path
        self._files = files

    @property
    def exists(self) -> bool:
        """Whether the query was ever started with it."""
        return "metadata" in self._files.names(self.path)

    def query_id(self) -> str | None:
        text = self._text("metadata")
        return None if text is None else str(json.loads(text)["id"])

    def planned(self) -> list[int]:
        """The batches whose plans are still kept, in order."""
        return self._numbers("offsets")

    def last_planned(self) -> int | None:
        return max(self.planned(), default=None)

    def last_committed(self) -> int | None:
        return max(self._numbers("commits"), default=None)

    def has_state(self) -> bool:
        """Whether stateful steps keep something here."""
        return bool(self._files.names(f"{self.path}/state"))

    def batch(self, number: int) -> PlannedBatch | None:
        """The plan of a batch, as long as it is kept."""
        text = self._text(f"offsets/{number}")
        if text is None:
            return None
        version, _, rest = text.partition("\n")
        if version.strip() != VERSION:
            raise PipelineError(
                f"{self.path}/offsets/{number} is written in format {version!r}, which this version of Millstream "
                f"cannot read (it knows {VERSION})"
            )
        about, *lines = rest.rstrip("\n").split("\n")
        facts: dict[str, Any] = json.loads(about) if about.strip() else {}
        offsets = [None if line == NONE else line for line in lines]
        return PlannedBatch(number, facts.get("batchTimestampMs", 0), facts.get("batchWatermarkMs", 0), offsets)

    def initial(self, source: int) -> str | None:
        """Where a source began, in its own terms."""
        text = self._text(f"sources/{source}/0")
        if text is None:
            return None
        text = text.removeprefix("\0")
        version, newline, rest = text.partition("\n")
        return rest.strip() if newline and version.startswith("v") else text.strip()

    def begin_of(self, number: int, source: int) -> str | None:
        """Where a source stood before a batch: at the end of the one before, or where it began."""
        before = max((other for other in self.planned() if other < number), default=None)
        if before is None:
            return self.initial(source) if number == 0 else None
        batch = self.batch(before)
        found = None if batch is None or source >= len(batch.offsets) else batch.offsets[source]
        return self.initial(source) if found is None else found

    def done(self) -> TopicOffsets:
        """Up to where topics have been processed for good: the last committed batch, or where they began."""
        committed = self.last_committed()
        batch = None if committed is None else self.batch(committed)
        began = merged(text for index in self._sources() if (text := self.initial(index)) is not None)
        found = batch.topics() if batch is not None else {}
        return {topic: {**began.get(topic, {}), **found.get(topic, {})} for topic in {**began, **found}}

    def _sources(self) -> list[int]:
        return self._numbers("sources")

    def _numbers(self, folder: str) -> list[int]:
        return sorted(int(name) for name in self._files.names(f"{self.path}/{folder}") if name.isdecimal())

    def _text(self, name: str) -> str | None:
        try:
            return self._files.read_text(f"{self.path}/{name}")
        except FileNotFoundError:
            return None


def topic_offsets(text: str) -> TopicOffsets | None:
    """A position of a topic source taken apart; None if it is another source's."""
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or not data:
            return None
        return {topic: {int(part): int(offset) for part, offset in parts.items()} for topic, parts in data.items()}
    except (ValueError, TypeError, AttributeError):
        return None


def merged(texts: Iterable[str]) -> TopicOffsets:
    """The positions of several sources together; where two read the same partition, the one that is behind counts."""
    return behind(topic_offsets(text) or {} for text in texts)


def behind(positions: Iterable[TopicOffsets]) -> TopicOffsets:
    """Several positions together: of every partition the one that is behind."""
    found: TopicOffsets = {}
    for position in positions:
        for topic, partitions in position.items():
            known = found.setdefault(topic, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return found


def _path(text: str) -> Path:
    return Path("/" + text.removeprefix("file:").lstrip("/") if text.startswith("file:") else text)

"""Which offset on the source became which offset on the target.

The same record has another offset on the target: transactions put a marker after each batch there, records that are
gone or were aborted leave holes here, and several sources may share a topic. So the mirror keeps a table, in the
compacted topic `mirror-offsets` on the target, written in the same transactions as the records themselves:

    ["east", "orders", 0]       -> {"next": 1200}                                        how far the mirror has read
    ["east", "orders", 0, 1000] -> {"topic": "east.orders", "first": 1042, "count": 200} a run: 1000.. are 1042..

Within a run the two count in step, so a position is translated exactly. A position between runs becomes the beginning
of the next run, one after the last run its end: nothing is ever skipped. A run goes when the target has deleted its
records.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

TOPIC = "mirror-offsets"
TOPIC_CONFIG = {"cleanup.policy": "compact"}

Part = tuple[str, int]
"""A topic of the source, and one of its partitions."""
Entry = tuple[bytes, bytes | None]
"""Key and value of a record of `mirror-offsets`."""


class Run(NamedTuple):
    """Records that follow one another on both sides."""

    source_first: int
    target_topic: str
    target_first: int
    length: int


@dataclass
class OffsetTable:
    """What `mirror-offsets` says of one source."""

    source: str
    positions: dict[Part, int] = field(default_factory=dict)
    runs: dict[Part, list[Run]] = field(default_factory=dict)

    def apply(self, key: bytes, value: bytes | None) -> None:
        """One record of the topic; those of other sources are none of our business."""
        source, topic, partition, *first = json.loads(key)
        if source != self.source:
            return
        part = (topic, partition)
        fields = None if value is None else json.loads(value)
        if not first:
            if fields is not None:
                self.positions[part] = fields["next"]
            return
        runs = self.runs.setdefault(part, [])
        at = bisect_left(runs, first[0], key=_source_first)
        known = at < len(runs) and runs[at].source_first == first[0]
        runs[at : at + known] = (
            [] if fields is None else [Run(first[0], fields["topic"], fields["first"], fields["count"])]
        )

    def translate(self, part: Part, offset: int) -> int | None:
        """The position on the target that goes on where `offset` does on the source; None if nothing was copied yet."""
        runs = self.runs.get(part)
        if not runs:
            return None
        at = bisect_right(runs, offset, key=_source_first) - 1
        run = runs[max(at, 0)]
        if offset < run.source_first + run.length:
            return run.target_first + max(offset - run.source_first, 0)
        if at + 1 < len(runs):
            return runs[at + 1].target_first
        return run.target_first + run.length

    def position_entry(self, part: Part, offset: int) -> Entry:
        return _json([self.source, *part]), _json({"next": offset})

    def run_entry(self, part: Part, run: Run) -> Entry:
        fields = {"topic": run.target_topic, "first": run.target_first, "count": run.length}
        return _json([self.source, *part, run.source_first]), _json(fields)

    def forgotten(self, part: Part, target_start: int) -> Iterator[Entry]:
        """Tombstones of the runs whose records the target has deleted."""
        for run in self.runs.get(part, ()):
            if run.target_first + run.length <= target_start:
                yield _json([self.source, *part, run.source_first]), None


def runs_of(target_topic: str, written: list[tuple[int, int]]) -> list[Run]:
    """Runs out of pairs (offset on the source, offset on the target), in order."""
    runs: list[Run] = []
    for source, target in written:
        last = runs[-1] if runs else None
        if last is not None and (source - last.source_first, target - last.target_first) == (last.length, last.length):
            runs[-1] = last._replace(length=last.length + 1)
        else:
            runs.append(Run(source, target_topic, target, 1))
    return runs


def _source_first(run: Run) -> int:
    return run.source_first


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()

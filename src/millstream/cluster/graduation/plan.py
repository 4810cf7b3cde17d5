"""What a preflight finds: the plan of a move as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Partition(NamedTuple):
    """A partition by name and number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Side(NamedTuple):
    """One of the two clusters."""

    bootstrap: str
    cluster_id: str
    brokers: int


class PartitionPlan(NamedTuple):
    """From where to where one partition is copied."""

    partition: int
    first: int
    """The source's log start offset."""
    end: int
    """The goal: the source's last stable offset."""
    at: int
    """The target's end offset: everything before it is there already."""
    open_transaction: bool
    """Whether records of a transaction that is still open lie behind the goal."""


TopicState = Literal["new", "empty", "resume", "moved"]
"""Not at the target; there but empty; copied in part by an earlier run; moved by an earlier run, and nothing new."""


class TopicPlan(NamedTuple):
    """One topic that is to be moved."""

    name: str
    state: TopicState
    partitions: tuple[PartitionPlan, ...]
    bytes: int
    """On the source's disk."""
    codecs: tuple[str, ...]
    """Of each partition's batches."""
    configs: Mapping[str, str]
    """To be set at the target, since its own defaults differ."""
    replication_factor: int
    """-1: the target's default."""
    compacted: bool

    @property
    def offsets(self) -> int:
        """How many offsets the records lie in: the number of records, unless some offsets are empty."""
        return sum(part.end - part.first for part in self.partitions)

    @property
    def to_copy(self) -> int:
        return sum(max(0, part.end - max(part.at, part.first)) for part in self.partitions)


class GroupPlan(NamedTuple):
    """One group and where it stands in the topics that are moved."""

    group: str
    state: str
    positions: Mapping[Partition, tuple[int, str]]
    """Offset and metadata of each commit."""
    refused: str
    """Why it is not moved; empty if it is."""


class LeftOut(NamedTuple):
    """Something at the source that is not moved, and why."""

    what: str
    why: str


class Blocker(NamedTuple):
    """Something that must be put right before anything is moved."""

    subject: str
    problem: str
    remedy: str


class Preflight(NamedTuple):
    """All of it."""

    source: Side
    target: Side
    topics: tuple[TopicPlan, ...]
    groups: tuple[GroupPlan, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    blockers: tuple[Blocker, ...]

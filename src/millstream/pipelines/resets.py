"""A pipeline begins anew somewhere else: what that means, and then doing it.

A reset removes the checkpoints, which are all that a pipeline knows of its past (positions and state), writes down
where the next run begins, and moves the consumer group there, so that its lag is right at once. Where to begin is
settled when the plan is made, as offsets: what was shown is what happens. Only `earliest` stays a word, for retention
goes on.

The next run's beginning is written first and the checkpoints go after: broken off in between, the old checkpoints still
count, and the same command does the rest. Outputs are never touched; `outputs` says what happens to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError
from millstream.cluster.positions import Position, parse_time
from millstream.pipelines import offsets
from millstream.pipelines.checkpoints import LOCAL_FILES, Checkpoint, FileSystem, TopicOffsets
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sources import TopicSource
from millstream.pipelines.home import PipelineFolder, Start
from millstream.pipelines.offsets import TopicBounds
from millstream.pipelines.outputs import Output, output_of

FORMS = (
    "earliest, latest, a time (2026-05-01T12:00, @MILLISECONDS, 15m for that long ago), or TOPIC:PARTITION=OFFSET,..."
)
_OFFSET = re.compile(r"([a-zA-Z0-9._-]{1,249}):(\d{1,9})=(\d{1,18})")
Target = Position | TopicOffsets
"""Where to go: one place in all partitions, or offsets for some, where the others stay."""


class Removed(NamedTuple):
    """A query's checkpoint that goes."""

    query: str
    path: str
    batch: int | None
    """The last batch that was done with it."""
    state: bool
    """Whether it has state, which goes too."""


class Move(NamedTuple):
    """One partition of one query: where it is, where it goes on, and what that means in records."""

    query: str
    topic: str
    partition: int
    before: int | None
    after: int
    again: int
    skipped: int


class ResetPlan(NamedTuple):
    """All that a reset does. `blocker` is why it cannot be done now, if it cannot."""

    pipeline: str
    removed: list[Removed]
    moves: list[Move]
    begin_anew: list[str]
    """The sources that are no topics: all their rows come again."""
    outputs: list[Output]
    notes: list[str]
    blocker: str | None
    start: dict[str, Start]
    positions: list[tuple[Connection, TopicOffsets]]
    """By cluster, where the consumer group goes."""

    @property
    def again(self) -> int:
        return sum(move.again for move in self.moves)

    @property
    def repeats(self) -> bool:
        """Whether the outputs get something again."""
        return bool(self.again or self.begin_anew)

    @property
    def skipped(self) -> int:
        return sum(move.skipped for move in self.moves)


def parse_to(text: str) -> Target:
    """`--to`; BadInput says which forms there are."""
    word = text.strip()
    if word in ("earliest", "latest"):
        return Position("beginning" if word == "earliest" else "end")
    parts = [_OFFSET.fullmatch(part.strip()) for part in word.split(",")]
    if all(parts):
        found: TopicOffsets = {}
        for match in parts:
            assert match is not None
            found.setdefault(match[1], {})[int(match[2])] = int(match[3])
        return found
    moment = parse_time(word)
    if moment is None:
        raise BadInput(f"--to: {text!r} is not a place to begin: it can be {FORMS}")
    return Position("time", moment)


def plan(
    connection: Connection,
    pipeline: Pipeline,
    folder: PipelineFolder,
    target: Target,
    files: FileSystem = LOCAL_FILES,
) -> ResetPlan:
    """What resetting the pipeline would do. `files` must reach the checkpoints."""
    topic_sources = {name: source for name, source in pipeline.named_sources.items() if isinstance(source, TopicSource)}
    others = [name for name in pipeline.named_sources if name not in topic_sources]
    earliest = isinstance(target, Position) and target.kind == "beginning"
    if others and not earliest:
        raise BadInput(
            f"--to: source {', '.join(others)} is no topic and can only begin anew: --to earliest does that for all"
        )
    removed, done = _checkpoints(folder, files)
    goals: dict[str, _Goal] = {}
    for name, source in topic_sources.items():
        cluster = connection if source.bootstrap is None else Connection(source.bootstrap)
        goals[name] = _goal(cluster, source, target, done)
    if isinstance(target, dict):
        _refuse_strangers(target, goals)
    moves = _moves(goals, done)
    return ResetPlan(
        pipeline.name,
        removed,
        moves,
        others,
        [output_of(sink) for sink in pipeline.sinks],
        list(_notes(pipeline, others, removed, moves)),
        _blocker(pipeline.name, folder),
        {name: "earliest" if earliest else goal.after for name, goal in goals.items()},
        [(goal.cluster, goal.after) for goal in goals.values()],
    )


def execute(plan: ResetPlan, pipeline: Pipeline, folder: PipelineFolder, files: FileSystem = LOCAL_FILES) -> None:
    """Does it; ClusterError while the pipeline runs."""
    lock = folder.acquire()  # None: a process has it beside others that run, and it has ended there
    try:
        blocker = _blocker(plan.pipeline, folder) if lock is None else None
        if blocker is not None:
            raise ClusterError(blocker)
        folder.set_start_override(plan.start)
        for checkpoint in plan.removed:
            files.remove(checkpoint.path)
        folder.forget_checkpoints()
        for cluster, positions in plan.positions:
            offsets.commit_group(cluster, pipeline.group, positions)
    finally:
        if lock is not None:
            os.close(lock)


class _Goal(NamedTuple):
    """Where the partitions of one source go on."""

    cluster: Connection
    bounds: TopicBounds
    after: TopicOffsets


def _checkpoints(folder: PipelineFolder, files: FileSystem) -> tuple[list[Removed], dict[str, TopicOffsets]]:
    """The checkpoints there are, and up to where each query is done."""
    root = folder.checkpoint_root()
    removed, done = [], {}
    for name in files.names(root):
        checkpoint = Checkpoint(f"{root}/{name}", files)
        if checkpoint.exists and not name.startswith("."):
            state = checkpoint.has_state()
            removed.append(Removed(name, checkpoint.path, checkpoint.last_committed(), state))
            done[name] = checkpoint.done()
    return removed, done


def _goal(cluster: Connection, source: TopicSource, target: Target, done: Mapping[str, TopicOffsets]) -> _Goal:
    names = offsets.topic_names(cluster, source.topics, source.pattern)
    ends = offsets.beginning_and_end(cluster, names)
    if isinstance(target, Position):
        return _Goal(cluster, ends, offsets.resolve(cluster, names, target))
    after: TopicOffsets = {}
    for topic, partitions in ends.items():
        wanted = target.get(topic, {})
        for partition in wanted:
            if partition not in partitions:
                raise BadInput(f"--to: {topic} has no partition {partition}, it has 0 to {len(partitions) - 1}")
        after[topic] = {
            partition: _settled(topic, partition, wanted.get(partition), first, end, done)
            for partition, (first, end) in partitions.items()
        }
    return _Goal(cluster, ends, after)


def _settled(
    topic: str, partition: int, wanted: int | None, first: int, end: int, done: Mapping[str, TopicOffsets]
) -> int:
    """The offset that was asked for; else where the query that is behind stands, or what is left from there."""
    if wanted is None:
        known = [place[topic][partition] for place in done.values() if partition in place.get(topic, {})]
        return min(max(min(known, default=first), first), end)
    if not first <= wanted <= end:
        raise BadInput(f"--to: {topic}:{partition}={wanted} is outside of what is there, which is {first} to {end}")
    return wanted


def _refuse_strangers(target: TopicOffsets, goals: Mapping[str, _Goal]) -> None:
    known = {topic for goal in goals.values() for topic in goal.after}
    for topic in target:
        if topic not in known:
            raise BadInput(
                f"--to: the pipeline does not read {topic}; it reads {', '.join(sorted(known)) or 'no topic'}"
            )


def _moves(goals: Mapping[str, _Goal], done: Mapping[str, TopicOffsets]) -> list[Move]:
    moves = []
    for query, positions in sorted(done.items()) or [("", {})]:
        for goal in goals.values():
            for topic, partitions in sorted(goal.after.items()):
                for partition, after in sorted(partitions.items()):
                    before = positions.get(topic, {}).get(partition)
                    first = goal.bounds[topic][partition].first
                    begun = max(before, first) if before is not None else after
                    again, skipped = max(0, begun - after), max(0, after - (after if before is None else before))
                    moves.append(Move(query, topic, partition, before, after, again, skipped))
    return moves


def _notes(
    pipeline: Pipeline, others: Iterable[str], removed: Iterable[Removed], moves: Iterable[Move]
) -> Iterable[str]:
    for name in others:
        yield f"source {name} begins anew, at its own `start`: all its rows come again"
    if any(checkpoint.state for checkpoint in removed):
        yield "its state goes too: aggregates, windows and de-duplication begin anew with the records that come then"
    if any(move.again for move in moves):
        yield f"bad records among those that come again go to {pipeline.dead_letter_topic} again"
    if any(move.skipped for move in moves):
        yield "records that are skipped never reach the outputs"


def _blocker(name: str, folder: PipelineFolder) -> str | None:
    if folder.is_running():
        return f"pipeline {name} runs: stop it first (`millstream pipeline stop {name}`)"
    return None


def as_json(plan: ResetPlan, *, executed: bool) -> dict[str, Any]:
    """For machines."""
    return {
        "pipeline": plan.pipeline,
        "executed": executed,
        "blocker": plan.blocker,
        "again": plan.again,
        "skipped": plan.skipped,
        "begin_anew": plan.begin_anew,
        "checkpoints": [checkpoint._asdict() for checkpoint in plan.removed],
        "partitions": [move._asdict() for move in plan.moves],
        "outputs": [output._asdict() for output in plan.outputs],
        "notes": plan.notes,
    }

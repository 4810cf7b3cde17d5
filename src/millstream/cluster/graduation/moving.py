"""Does a planned move: topics and their records, verification, group positions; each step can be taken up again.

`MOVERS` is the list of what is moved, in order. A mover takes the `Move`, does its part and adds to its `Outcome`;
what else belongs to a cluster (schemas, access rules) joins as another mover.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.graduation import configs, groups
from millstream.cluster.graduation.copying import Copier, Progress, Track, delete_before
from millstream.cluster.graduation.plan import Partition, Preflight, TopicPlan
from millstream.cluster.graduation.preflight import Options
from millstream.cluster.graduation.requests import offsets
from millstream.cluster.graduation.state import State, TopicRecord
from millstream.cluster.graduation.verification import Comparison, compare

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

CAUGHT_UP_SECONDS = 1.0
"""A pass over what is new that is this short has caught up with the source's producers."""
_SETTLE_SECONDS = 0.5

Report = Callable[[str, Progress, int], None]
"""Told while the work goes on: the phase, how far it is, and how many offsets the phase has in all."""


class Outcome(NamedTuple):
    """What was done."""

    topics: list[str]
    records: int
    bytes: int
    placeholders: int
    comparisons: list[Comparison]
    groups: list[groups.GroupResult]
    refused_groups: list[tuple[str, str]]
    arrived_later: int
    """Offsets that the source has got since the goal was set."""
    seconds: float


class Move:
    """A move at work: both sides, the plan, and what has been done."""

    def __init__(
        self,
        source: Connection,
        target: Connection,
        admins: tuple[KafkaAdminClient, KafkaAdminClient],
        plan: Preflight,
        options: Options,
        state: State,
        report: Report,
    ) -> None:
        self.source, self.target = source, target
        self.source_admin, self.target_admin = admins
        self.plan = plan
        self.options = options
        self.state = state
        self.report = report
        self.topics = [topic for topic in plan.topics if topic.state != "moved"]
        self.tracks = {track.where: track for topic in self.topics for track in self._tracks(topic)}
        self.comparisons: list[Comparison] = []
        self.groups: list[groups.GroupResult] = []
        self.refused_groups: list[tuple[str, str]] = []

    def _tracks(self, topic: TopicPlan) -> list[Track]:
        record = self.state.topics.get(topic.name)
        starts = record.starts if record is not None and topic.state == "resume" else {}
        return [
            Track(
                Partition(topic.name, part.partition),
                first=part.first,
                at=part.at,
                goal=part.end,
                start=starts.get(part.partition),
                codec=codec,
            )
            for part, codec in zip(topic.partitions, topic.codecs, strict=True)
        ]

    def save_starts(self) -> None:
        for where, track in self.tracks.items():
            if track.start is not None:
                self.state.topics[where.topic].starts[where.partition] = track.start
        self.state.save()


def execute(move: Move) -> Outcome:
    """All movers in order. ClusterError names what went wrong; the same command goes on from there."""
    began = time.monotonic()
    with move.state.locked():
        for mover in MOVERS:
            mover(move)
    later = offsets(move.source_admin, move.tracks, -1)
    tracks = move.tracks.values()
    return Outcome(
        [topic.name for topic in move.topics],
        sum(track.records for track in tracks),
        sum(track.bytes for track in tracks),
        sum(track.placeholders for track in tracks),
        move.comparisons,
        move.groups,
        move.refused_groups,
        sum(max(0, later[where] - track.goal) for where, track in move.tracks.items()),
        time.monotonic() - began,
    )


def make_topics(move: Move) -> None:
    """Makes what is not there, under the configs for copying."""
    new = {topic.name: topic for topic in move.topics if topic.state == "new"}
    limits = _message_limits(move, [topic.name for topic in move.topics])
    if new:
        wanted = {
            name: {
                "num_partitions": len(topic.partitions),
                "replication_factor": move.options.replication_factor,
                "configs": configs.while_copying(topic.configs, limits[name]),
            }
            for name, topic in new.items()
        }
        move.target_admin.create_topics(wanted, wait_for_metadata=True)
    _set_configs(
        move,
        {
            topic.name: configs.while_copying(topic.configs, limits[topic.name])
            for topic in move.topics
            if topic.state != "new"
        },
    )
    ours = _topic_ids(move.source_admin, move.topics)
    theirs = _topic_ids(move.target_admin, move.topics)
    for topic in move.topics:
        if topic.state == "resume":
            move.state.topics[topic.name].done = False
        else:
            move.state.topics[topic.name] = TopicRecord(ours[topic.name], theirs[topic.name])
    move.state.save()


def copy_records(move: Move) -> None:
    """One pass up to the goals; with `follow` further ones until the source's producers are caught up with."""
    _take_up_position(move)
    while True:
        began = time.monotonic()
        report = partial(_report_copy, move, sum(track.goal - track.next for track in move.tracks.values()))
        copier = Copier(
            move.source,
            move.target,
            move.target_admin,
            move.tracks.values(),
            visible_fillers=move.options.visible_fillers,
            save=move.save_starts,
            progress=report,
        )
        copier.run()
        if not move.options.follow:
            return
        ends = offsets(move.source_admin, move.tracks, -1, committed=True)
        grown = any(ends[where] > track.goal for where, track in move.tracks.items())
        short = time.monotonic() - began < CAUGHT_UP_SECONDS
        for where, track in move.tracks.items():
            track.goal = max(track.goal, ends[where])
        if not grown:
            return
        if short:
            move.options = move.options._replace(follow=False)  # the final pass


def _report_copy(move: Move, total: int, progress: Progress) -> None:
    move.report("copy", progress, total)


def _take_up_position(move: Move) -> None:
    """Where a killed run left off: its last requests may still be on their way, so the ends must have come to rest."""
    resumed = [where for where, track in move.tracks.items() if track.next]
    if not resumed:
        return
    ends = offsets(move.target_admin, resumed, -1)
    while True:
        time.sleep(_SETTLE_SECONDS)
        again = offsets(move.target_admin, resumed, -1)
        if again == ends:
            break
        ends = again
    firsts = offsets(move.target_admin, resumed, -2)
    unfinished = {}
    for where in resumed:
        track = move.tracks[where]
        track.next = track.acknowledged = ends[where]
        track.goal = max(track.goal, track.next)
        if track.start is not None and firsts[where] < track.start <= ends[where]:
            unfinished[where] = track.start
    delete_before(move.target_admin, unfinished)


def verify_records(move: Move) -> None:
    """Both sides read anew and compared; ClusterError names the partitions that differ."""
    now = offsets(move.source_admin, move.tracks, -2)
    ranges = {}
    for where, track in move.tracks.items():
        since = move.state.topics[where.topic].verified.get(where.partition, 0)
        ranges[where] = min(max(track.start or 0, now[where], since), track.goal), track.goal
    total = 2 * sum(end - first for first, end in ranges.values())
    compacted = frozenset(topic.name for topic in move.topics if topic.compacted)
    move.comparisons += compare(
        move.source, move.target, ranges, compacted, lambda progress: move.report("verify", progress, total)
    )
    ends = offsets(move.target_admin, move.tracks, -1)
    wrong = [f"{found.topic}-{found.partition} ({_difference(found)})" for found in move.comparisons if not found.equal]
    wrong += [
        f"{where} (ends at {ends[where]} at the target, not at {track.goal})"
        for where, track in move.tracks.items()
        if ends[where] != track.goal
    ]
    if wrong:
        raise ClusterError(f"the target does not hold what the source holds: {'; '.join(wrong)}")
    for where, track in move.tracks.items():
        move.state.topics[where.topic].verified[where.partition] = track.goal
    move.state.save()


def _difference(found: Comparison) -> str:
    ours, theirs = found.source, found.target
    if ours.records != theirs.records:
        return f"{ours.records} records at the source, {theirs.records} at the target"
    if (ours.first, ours.last) != (theirs.first, theirs.last):
        return f"offsets {ours.first} to {ours.last} at the source, {theirs.first} to {theirs.last} at the target"
    return f"checksum {ours.checksum} at the source, {theirs.checksum} at the target"


def settle_configs(move: Move) -> None:
    """The topics' own configs, now that old records may be deleted and compacted again."""
    _set_configs(move, {topic.name: configs.afterwards(topic.configs) for topic in move.topics})
    for topic in move.topics:
        move.state.topics[topic.name].done = True
    move.state.save()


def move_group_positions(move: Move) -> None:
    """Positions are read again now: groups may have gone on while records were copied."""
    topics = frozenset(topic.name for topic in move.plan.topics)
    where = [Partition(topic.name, part.partition) for topic in move.plan.topics for part in topic.partitions]
    firsts, ends = offsets(move.target_admin, where, -2), offsets(move.target_admin, where, -1)
    bounds = {part: (firsts[part], ends[part]) for part in where}
    plans, _ = groups.plan(move.source_admin, move.target_admin, topics, move.state, force=move.options.force)
    for plan in plans:
        if plan.refused:
            move.refused_groups.append((plan.group, plan.refused))
        else:
            move.groups.append(groups.move(move.source_admin, move.target_admin, plan, bounds, move.state))


MOVERS: Sequence[Callable[[Move], None]] = (
    make_topics,
    copy_records,
    verify_records,
    settle_configs,
    move_group_positions,
)


def _set_configs(move: Move, changes: Mapping[str, Mapping[str, Any]]) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    if not changes:
        return
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, dict(change)) for name, change in changes.items()]
    for name, answer in move.target_admin.alter_configs(resources)["topic"].items():
        if answer != "OK":
            raise ClusterError(f"topic {name}: the target refused its configs: {answer}")


def _topic_ids(admin: KafkaAdminClient, topics: Sequence[TopicPlan]) -> dict[str, str]:
    names = [topic.name for topic in topics]
    return {topic["name"]: str(topic["topic_id"]) for topic in (admin.describe_topics(names) if names else ())}


def _message_limits(move: Move, names: Sequence[str]) -> dict[str, int]:
    """The source's max.message.bytes of each topic."""
    from kafka.admin import ConfigResource, ConfigResourceType

    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found: Any = move.source_admin.describe_configs(resources, config_filter="all")["topic"]
    return {name: int(found[name]["max.message.bytes"]["value"]) for name in names}

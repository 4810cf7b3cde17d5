"""The positions of consumer groups: what each has committed in the topics that are moved.

A group with members is at work: its position changes while it is copied, and its members would go on at the source.
It is refused unless that is forced. At the target a group with members is always refused (the broker would refuse,
too), and so is one that has other positions there than an earlier run gave it: it has gone on, and setting it back
would give it records twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.errors import ClusterError
from millstream.cluster.graduation.plan import GroupPlan, LeftOut, Partition
from millstream.cluster.graduation.state import State

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

Positions = dict[Partition, tuple[int, str]]
_TYPES = ("", "classic", "consumer")
_AT_REST = ("Empty", "Dead", "")


class GroupResult(NamedTuple):
    """One group that was moved."""

    group: str
    partitions: int
    adjusted: int
    """Positions that had to be changed to lie within what was moved."""


def plan(
    source: KafkaAdminClient, target: KafkaAdminClient, topics: frozenset[str], state: State, *, force: bool
) -> tuple[list[GroupPlan], list[LeftOut]]:
    """All groups with positions in these topics; and those of kinds that have no positions to copy."""
    groups, left_out = [], []
    theirs = {entry["group_id"]: entry.get("group_state", "") for entry in target.list_groups()}
    for entry in sorted(source.list_groups(), key=lambda entry: str(entry["group_id"])):
        name, status, kind = entry["group_id"], entry.get("group_state", ""), entry.get("group_type", "").lower()
        if kind not in _TYPES or entry.get("protocol_type", "") not in ("", "consumer"):
            left_out.append(
                LeftOut(f"group {name}", f"is a {kind or entry['protocol_type']} group, not a consumer group")
            )
            continue
        positions = committed(source, name, topics)
        if positions:
            refused = ""
            if status not in _AT_REST and not force:
                refused = "has members at the source: stop them, or --force"
            elif name in theirs:
                refused = _refusal_there(
                    target, name, theirs[name], positions, state.positions.get(name, {}), force=force
                )
            groups.append(GroupPlan(name, status, positions, refused))
    return groups, left_out


def committed(admin: KafkaAdminClient, group: str, topics: Iterable[str]) -> Positions:
    wanted = frozenset(topics)
    return {
        Partition(where.topic, where.partition): (position.offset, position.metadata or "")
        for where, position in sorted(admin.list_group_offsets([group]).get(group, {}).items())
        if where.topic in wanted and position.offset >= 0
    }


def _refusal_there(
    target: KafkaAdminClient, name: str, status: str, positions: Positions, ours: Mapping[str, int], *, force: bool
) -> str:
    """What the group's state at the target says against setting its positions; `ours` are those an earlier run set."""
    if status not in _AT_REST:
        return "has members at the target: stop them"
    for where, (offset, _) in committed(target, name, {where.topic for where in positions}).items():
        if not force and where in positions and offset not in (positions[where][0], ours.get(str(where))):
            return "has other positions at the target: --force replaces them"
    return ""


def move(
    source: KafkaAdminClient,
    target: KafkaAdminClient,
    group: GroupPlan,
    bounds: Mapping[Partition, tuple[int, int]],
    state: State,
) -> GroupResult:
    """Commits the group's present positions at the target and reads them back; ClusterError if they are not the same.

    A position before the target's first record or behind its end is taken to there: what the group reads next is the
    same.
    """
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    now = committed(source, group.group, {where.topic for where in bounds})
    wanted = {
        where: (min(max(offset, bounds[where][0]), bounds[where][1]), metadata)
        for where, (offset, metadata) in now.items()
        if where in bounds
    }
    commits: dict[Any, Any] = {
        TopicPartition(*where): OffsetAndMetadata(offset, metadata, -1)  # leader epochs are each cluster's own
        for where, (offset, metadata) in wanted.items()
    }
    for where, error in (target.alter_group_offsets(group.group, commits) if commits else {}).items():
        if error.errno:
            raise ClusterError(
                f"group {group.group}: its position in {where.topic}-{where.partition} was refused ({error.__name__})"
            )
    found = committed(target, group.group, {where.topic for where in wanted})
    for where, position in wanted.items():
        if found.get(where) != position:
            there = found[where][0] if where in found else "no position"
            raise ClusterError(f"group {group.group}: {where} is at {there} at the target, not at {position[0]}")
    state.positions[group.group] = {str(where): offset for where, (offset, _) in wanted.items()}
    state.save()
    return GroupResult(group.group, len(wanted), sum(wanted[where][0] != now[where][0] for where in wanted))

"""Consumer groups of any cluster: who is in them, how far they are, how far behind, and moving their positions.

Lag is counted in offsets, as everywhere in Kafka. A partition without a committed position has no lag (None).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import nearest, refuse, refuse_client
from millstream.cluster.connection import REQUEST_SECONDS, Connection
from millstream.cluster.errors import BadInput, ClusterError, NotFound
from millstream.cluster.positions import (
    Bounds,
    Position,
    bounds,
    chosen_partitions,
    offsets_of,
    parse_position,
    topic_partitions,
)

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

STATES = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead")
TYPES = ("classic", "consumer", "share", "streams")
Place = tuple[str, int]


class GroupSummary(NamedTuple):
    group: str
    type: str
    state: str
    protocol_type: str


class Member(NamedTuple):
    """`partitions` are what it has: topic -> partitions."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    partitions: dict[str, list[int]]


class Lag(NamedTuple):
    """How far a group is in one partition, and which of its members has it."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    client_id: str | None
    member_id: str | None


class Group(NamedTuple):
    group: str
    type: str
    state: str
    assignor: str
    coordinator: int | None
    members: list[Member]
    partitions: list[Lag]


class TotalLag(NamedTuple):
    group: str
    state: str
    topics: int
    partitions: int
    lag: int


class Target(NamedTuple):
    """Where to move positions: to a place, or by a number of records."""

    position: Position | None
    shift: int = 0


class Move(NamedTuple):
    """One partition's position before and after; `note` says why it is not exactly what was asked for."""

    topic: str
    partition: int
    before: int | None
    after: int
    change: int | None
    note: str = ""


class SeekPlan(NamedTuple):
    """`blocker` is why the group's positions cannot be moved now, if they cannot; `exists` is False for a new group."""

    group: str
    exists: bool
    moves: list[Move]
    blocker: str | None


def list_groups(connection: Connection, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupSummary]:
    """All groups by name, of these states and types only if any are named."""
    wanted_states = {_word(state, STATES, "--state") for state in states}
    wanted_types = {_word(kind, TYPES, "--type") for kind in types}
    with connection.admin() as admin:
        found = _listed(admin)
    return [
        group
        for _, group in sorted(found.items())
        if (not wanted_states or group.state in wanted_states) and (not wanted_types or group.type in wanted_types)
    ]


def describe_group(connection: Connection, group: str) -> Group:
    """Members, what they have, and the lag of each partition; NotFound if there is no such group."""
    with connection.admin() as admin:
        summary = _existing(admin, [group])[0]
        if summary.type == "share":
            raise ClusterError(f"{group} is a share group: it has no positions in partitions, and cannot be described")
        description = _described(connection, group)
        members = sorted(_members(description), key=lambda member: (member.client_id, member.member_id))
        partitions = _lags(admin, group, members)
    return Group(
        group,
        summary.type or "classic",
        summary.state,
        description.partition_assignor or "",
        None if description.coordinator is None else description.coordinator.id,
        members,
        partitions,
    )


def total_lags(connection: Connection, groups: Iterable[str] = ()) -> list[TotalLag]:
    """The lag of each of these groups, or of all; NotFound if one does not exist."""
    with connection.admin() as admin:
        names = list(dict.fromkeys(groups))
        found = (
            _existing(admin, names)
            if names
            else [group for _, group in sorted(_listed(admin).items()) if group.type != "share"]
        )
        totals = []
        for summary in found:
            lags = _lags(admin, summary.group, [])
            topics = len({lag.topic for lag in lags})
            totals.append(TotalLag(summary.group, summary.state, topics, len(lags), sum(lag.lag or 0 for lag in lags)))
    return totals


def delete_groups(connection: Connection, groups: Iterable[str]) -> None:
    """Deletes all of them; one that does not exist or has members stops it before anything is deleted."""
    from kafka import errors

    names = list(dict.fromkeys(groups))
    with connection.admin() as admin:
        for summary in _existing(admin, names):
            if summary.state not in ("Empty", "Dead"):
                raise ClusterError(_has_members(summary, "deleted"))
        for group, result in admin.delete_groups(names).items():
            if result != "OK":
                refuse(f"group {group}", getattr(errors, result).errno, None)


def parse_target(text: str) -> Target:
    """`--to`: a place as in `positions`, or +N and -N to shift."""
    if match := re.fullmatch(r"([+-])(\d{1,18})", text.strip()):
        return Target(None, int(match[2]) if match[1] == "+" else -int(match[2]))
    try:
        return Target(parse_position(text, "--to"))
    except BadInput as error:
        raise BadInput(
            f"--to: {text!r} is not a position: it can be earliest, latest, an offset, +N or -N to shift, "
            "a time (2026-05-01T12:00 or @MILLISECONDS), or 15m for that long ago"
        ) from error


def parse_topic(text: str) -> tuple[str, list[int]]:
    """`--topic`: TOPIC, or TOPIC:0,2,5."""
    topic, colon, numbers = text.partition(":")
    parts = numbers.split(",") if colon else []
    if not topic or not all(re.fullmatch(r"\d{1,9}", part.strip()) for part in parts):
        raise BadInput(f"--topic: {text!r} must be TOPIC or TOPIC:PARTITION,..., for example clicks:0,2")
    return topic, [int(part) for part in parts]


def plan_seek(connection: Connection, group: str, topics: Mapping[str, Iterable[int]], target: Target) -> SeekPlan:
    """What `seek` would do to the partitions of these topics, or to all that the group has a position in."""
    with connection.admin() as admin:
        listed = _listed(admin)
        summary = listed.get(group)
        committed = _committed(admin, group) if summary else {}
        if topics:
            wanted = {
                topic: chosen_partitions(topic, topic_partitions(admin, topic), parts, "--topic")
                for topic, parts in topics.items()
            }
        elif summary is None:
            raise NotFound(
                f"there is no group {group}{nearest(group, listed)} (give --topic to set positions of a new group)"
            )
        elif not committed:
            raise BadInput(f"group {group} has no positions yet: say with --topic which it should have")
        else:
            wanted = {}
            for topic, partition in sorted(committed):
                wanted.setdefault(topic, []).append(partition)
        moves = []
        for topic, parts in sorted(wanted.items()):
            ends = bounds(admin, topic, parts)
            moves += _moves(admin, topic, ends, {part: committed.get((topic, part)) for part in parts}, target)
    blocker = None
    if summary and summary.state not in ("Empty", "Dead"):
        blocker = _has_members(summary, "moved")
    return SeekPlan(group, summary is not None, moves, blocker)


def seek(connection: Connection, plan: SeekPlan) -> None:
    """Commits the positions of the plan."""
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    if plan.blocker:
        raise ClusterError(plan.blocker)
    offsets = {TopicPartition(move.topic, move.partition): OffsetAndMetadata(move.after, "", -1) for move in plan.moves}
    with connection.admin() as admin:
        for place, error in admin.alter_group_offsets(plan.group, offsets).items():
            if error.errno:
                refuse(f"group {plan.group}, {place.topic}-{place.partition}", error.errno, None)


def _moves(
    admin: KafkaAdminClient, topic: str, ends: dict[int, Bounds], committed: Mapping[int, int | None], target: Target
) -> list[Move]:
    if target.position is None:
        missing = [partition for partition, before in committed.items() if before is None]
        if missing:
            places = f"{topic}:{','.join(map(str, missing))}"
            raise BadInput(f"--to {target.shift:+}: the group has no position in {places} to shift from")
        wanted = {partition: (before or 0) + target.shift for partition, before in committed.items()}
    elif target.position.kind == "offset":
        wanted = dict.fromkeys(ends, target.position.number)
    else:
        wanted = offsets_of(admin, topic, target.position, ends)
    moves = []
    for partition, (first, end) in ends.items():
        after = min(max(wanted[partition], first), end)
        note = "" if after == wanted[partition] else f"{wanted[partition]} is outside {first}..{end}"
        before = committed[partition]
        moves.append(Move(topic, partition, before, after, None if before is None else after - before, note))
    return moves


def _listed(admin: KafkaAdminClient) -> dict[str, GroupSummary]:
    found = {}
    for group in admin.list_groups():
        found[group["group_id"]] = GroupSummary(
            group["group_id"],
            (group.get("group_type") or "classic").lower(),
            group.get("group_state") or "Unknown",
            group["protocol_type"],
        )
    return found


def _existing(admin: KafkaAdminClient, groups: Iterable[str]) -> list[GroupSummary]:
    listed = _listed(admin)
    for group in groups:
        if group not in listed:
            raise NotFound(f"there is no group {group}{nearest(group, listed)} (`millstream group list` shows all)")
    return [listed[group] for group in groups]


def _described(connection: Connection, group: str) -> Any:
    from confluent_kafka import KafkaException

    client = connection.group_admin()  # it must live until the answer is there
    try:
        return client.describe_consumer_groups([group])[group].result(REQUEST_SECONDS)
    except KafkaException as error:
        refuse_client(f"group {group}", error)


def _members(description: Any) -> Iterable[Member]:
    for member in description.members:
        partitions: dict[str, list[int]] = {}
        assignment = member.assignment.topic_partitions if member.assignment else None
        for place in sorted(assignment or [], key=lambda place: (place.topic, place.partition)):
            partitions.setdefault(place.topic, []).append(place.partition)
        yield Member(
            member.member_id, member.client_id, member.group_instance_id or None, member.host.lstrip("/"), partitions
        )


def _committed(admin: KafkaAdminClient, group: str) -> dict[Place, int]:
    offsets = admin.list_group_offsets({group: None})[group]
    return {(place.topic, place.partition): found.offset for place, found in offsets.items() if found.offset >= 0}


def _lags(admin: KafkaAdminClient, group: str, members: Iterable[Member]) -> list[Lag]:
    from kafka.errors import KafkaError

    committed = _committed(admin, group)
    owners = {
        (topic, partition): member
        for member in members
        for topic, partitions in member.partitions.items()
        for partition in partitions
    }
    places = sorted({*committed, *owners})
    ends: dict[Place, int] = {}
    for topic in {topic for topic, _ in places}:
        try:
            found = bounds(admin, topic, [part for name, part in places if name == topic])
        except (KafkaError, ClusterError):  # the topic is gone, or a partition has no leader
            continue
        ends.update({(topic, partition): ends_.end for partition, ends_ in found.items()})
    lags = []
    for place in places:
        position, end, owner = committed.get(place), ends.get(place), owners.get(place)
        lag = None if position is None or end is None else max(0, end - position)
        lags.append(
            Lag(*place, position, end, lag, owner.client_id if owner else None, owner.member_id if owner else None)
        )
    return lags


def _has_members(summary: GroupSummary, what: str) -> str:
    return f"group {summary.group} is in use ({summary.state}): stop its consumers first, then it can be {what}"


def _word(text: str, words: Iterable[str], argument: str) -> str:
    known = {word.lower(): word for word in words}
    plain = re.sub(r"[\s_-]", "", text).lower()
    if plain not in known:
        raise BadInput(f"{argument}: {text!r} is none of {', '.join(words)}{nearest(plain, known)}")
    return known[plain]

"""Group positions carried over, so that a consumer that moves to the target goes on where it was.

Each position that a group has committed on the source is translated and committed for the same group on the target,
with a mark in the commit's metadata. As long as the mark is there nobody has used the group on the target, and the
mirror keeps it up to date, forward and back. The first commit of a consumer there has no mark: from then on the
position is its own. A group with members on the target is not touched at all; the server refuses that.
"""

from __future__ import annotations

import re
from functools import cache

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from example_kit.clients import quiet
from mirror.offsets import OffsetTable, Part

SECONDS = 30.0


def carry_groups(
    source: str, target: str, table: OffsetTable, names: dict[Part, str], pattern: re.Pattern[str]
) -> dict[str, int]:
    """Group -> how many of its positions were changed on the target. `source` and `target` are addresses; `names`: what
    the mirrored partitions' topics are called on the target."""
    changed: dict[str, int] = {}
    for group in _admin(source).list_consumer_groups(request_timeout=SECONDS).result().valid:
        if pattern.fullmatch(group.group_id):
            changes = _changes(source, target, table, names, group.group_id)
            if changes and _commit(target, group.group_id, changes):
                changed[group.group_id] = len(changes)
    return changed


def carried(source: str, target: str, table: OffsetTable, names: dict[Part, str], group: str) -> bool:
    """Whether the group stands on the target where it does on the source."""
    return not _changes(source, target, table, names, group)


def _changes(source: str, target: str, table: OffsetTable, names: dict[Part, str], group: str) -> list[TopicPartition]:
    """The positions to commit on the target."""
    mark = f"carried by mirror from {table.source}"
    wanted = {
        (names[part], part[1]): position
        for found in _committed(source, group, [TopicPartition(*part) for part in names])
        if found.offset >= 0
        and (part := (found.topic, found.partition)) in names
        and (position := table.translate(part, found.offset)) is not None
    }
    return [
        TopicPartition(there.topic, there.partition, wanted[there.topic, there.partition], metadata=mark)
        for there in _committed(target, group, [TopicPartition(*part) for part in wanted])
        if there.offset != wanted[there.topic, there.partition] and (there.offset < 0 or there.metadata == mark)
    ]


def _committed(bootstrap: str, group: str, parts: list[TopicPartition]) -> list[TopicPartition]:
    return _outsider(bootstrap, group).committed(parts, SECONDS) if parts else []


def _commit(bootstrap: str, group: str, positions: list[TopicPartition]) -> bool:
    """False if the group has members."""
    try:
        _outsider(bootstrap, group).commit(offsets=positions, asynchronous=False)
    except KafkaException:
        return False
    return True


@cache
def _outsider(bootstrap: str, group: str) -> Consumer:
    """Reads and writes the group's positions without being a member, since it never subscribes. Kept to the end, when
    the clusters may be gone already, it is not to complain of that."""
    return Consumer({**quiet(bootstrap), "group.id": group, "enable.auto.commit": False})


@cache
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient(quiet(bootstrap))

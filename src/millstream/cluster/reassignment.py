"""Moving replicas between the brokers of a running cluster, with Kafka's own reassignments underneath.

`execute` hands the moves of a plan to the controller, watches until every partition has the replicas it was meant to
have, and lets the preferred leaders take over. It can be interrupted at any time: the cluster goes on by itself,
`in_progress` shows what is left, `cancel` takes it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.elections import hold
from millstream.cluster.errors import ClusterError
from millstream.cluster.layout import read_layout, reason
from millstream.cluster.placement import Move, TopicPartition
from millstream.cluster.plans import names

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

POLL_SECONDS = 0.5
SETTLE_SECONDS = 30.0
"""How long after a reassignment the cluster may take to show it: metadata spreads, folders are removed."""

Progress = Callable[[int, int], None]
"""Told again and again: partitions that are where they should be, partitions in the plan."""


class Reassignment(NamedTuple):
    """A partition on its way."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


def execute(connection: Connection, moves: Sequence[Move], progress: Progress, *, wait: bool = True) -> None:
    """Moves the partitions, and returns when they are where they should be, led by their preferred leaders."""
    if not moves:
        return
    target = {(move.topic, move.partition): move.after for move in moves}
    with connection.admin() as admin:
        _start(admin, target)
        if not wait:
            return
        _wait(admin, target, progress)
        _lead(admin, target)


def _start(admin: KafkaAdminClient, target: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
    from kafka.structs import TopicPartition as KafkaPartition

    answers = admin.alter_partition_reassignments(
        {KafkaPartition(*key): None if replicas is None else list(replicas) for key, replicas in target.items()}
    )
    refused = [f"{key.topic}-{key.partition}: {reason(error)}" for key, error in answers.items() if error is not None]
    if refused:
        raise ClusterError(f"{len(refused)} of {len(target)} partitions were refused: {'; '.join(sorted(refused)[:5])}")


def _wait(admin: KafkaAdminClient, target: Mapping[TopicPartition, tuple[int, ...]], progress: Progress) -> None:
    settle_by: float | None = None
    while True:
        moving = {(key.topic, key.partition) for key in admin.list_partition_reassignments()} & target.keys()
        current = read_layout(admin).placement({topic for topic, _ in target})
        there = [key for key, replicas in target.items() if current.get(key) == replicas and key not in moving]
        progress(len(there), len(target))
        if len(there) == len(target):
            return
        if not moving:
            settle_by = settle_by or time.monotonic() + SETTLE_SECONDS
            if time.monotonic() > settle_by:
                late = sorted(f"{topic}-{number}" for topic, number in target.keys() - set(there))
                raise ClusterError(
                    f"{len(late)} partitions have not got the replicas of the plan though nothing is moving any more "
                    f"(cancelled, or changed by someone else?): {names(late)}"
                )
        time.sleep(POLL_SECONDS)


def _lead(admin: KafkaAdminClient, target: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """The preferred leaders take over, as far as they are in sync."""
    wrong = [
        (partition.topic, partition.number)
        for partition in read_layout(admin).partitions
        if (partition.topic, partition.number) in target and not partition.has_preferred_leader
    ]
    if wrong:
        hold(admin, wrong, unclean=False)


def wait_until_empty(connection: Connection, broker: int) -> None:
    """Until a broker holds and leads nothing, by the metadata and by its own folders. ClusterError if it still does."""
    give_up = time.monotonic() + SETTLE_SECONDS
    with connection.admin() as admin:
        while True:
            layout = read_layout(admin)
            held = [f"{part.topic}-{part.number}" for part in layout.partitions if broker in part.replicas]
            if not held and broker in layout.alive:
                (answer,) = admin.describe_log_dirs(brokers=[broker])
                held = [
                    f"{topic['name']}-{part['partition_index']}"
                    for folder in answer["log_dirs"]
                    for topic in folder["topics"]
                    for part in topic["partitions"]
                ]
            if not held:
                return
            if time.monotonic() > give_up:
                raise ClusterError(f"broker {broker} still holds {names(held)}")
            time.sleep(POLL_SECONDS)


def in_progress(connection: Connection) -> list[Reassignment]:
    with connection.admin() as admin:
        found = admin.list_partition_reassignments()
    return sorted(
        Reassignment(key.topic, key.partition, state["replicas"], state["adding_replicas"], state["removing_replicas"])
        for key, state in found.items()
    )


def cancel(connection: Connection, running: Iterable[Reassignment]) -> None:
    """Back to the replicas there were before."""
    from kafka.errors import NoReassignmentInProgressError
    from kafka.structs import TopicPartition as KafkaPartition

    with connection.admin() as admin:
        answers = admin.alter_partition_reassignments(
            {KafkaPartition(row.topic, row.partition): None for row in running}
        )
    refused = [
        f"{key.topic}-{key.partition}: {reason(error)}"
        for key, error in answers.items()
        if error is not None and error is not NoReassignmentInProgressError  # done in the meantime
    ]
    if refused:
        raise ClusterError(f"not cancelled: {'; '.join(sorted(refused)[:5])}")

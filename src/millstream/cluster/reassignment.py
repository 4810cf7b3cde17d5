"""Moving replicas between the brokers of a running cluster, with Kafka's own reassignments underneath.

`execute` hands the moves of a plan to the controller, watches until every partition has the replicas it was meant to
have, and lets the preferred leaders take over. It can be interrupted at any time: the cluster goes on by itself,
`in_progress` shows what is left, `cancel` takes it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.elections import hold
from millstream.cluster.errors import ClusterError
from millstream.cluster.layout import patiently, read_layout, reason
from millstream.cluster.log_dirs import replicas
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
    _alter(connection, target)
    if wait:
        _wait(connection, target, progress)
        _lead(connection, target)


def _alter(
    connection: Connection,
    target: Mapping[TopicPartition, tuple[int, ...] | None],
    forgiven: Collection[type[Exception]] = (),
) -> None:
    """Asks for these replicas, None to go back to those before."""
    from kafka.structs import TopicPartition as KafkaPartition

    wanted = {KafkaPartition(*key): None if replicas is None else list(replicas) for key, replicas in target.items()}

    def ask(admin: KafkaAdminClient) -> Any:
        return admin.alter_partition_reassignments(wanted)

    refused = [
        f"{key.topic}-{key.partition}: {reason(error)}"
        for key, error in patiently(connection, ask).items()
        if error is not None and error not in forgiven
    ]
    if refused:
        raise ClusterError(f"{len(refused)} of {len(target)} partitions were refused: {'; '.join(sorted(refused)[:5])}")


def _wait(connection: Connection, target: Mapping[TopicPartition, tuple[int, ...]], progress: Progress) -> None:
    settle_by: float | None = None
    while True:
        moving = {(row.topic, row.partition) for row in in_progress(connection)} & target.keys()
        current = patiently(connection, read_layout).placement({topic for topic, _ in target})
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


def _lead(connection: Connection, target: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """The preferred leaders take over, as far as they are in sync."""
    wrong = [
        (partition.topic, partition.number)
        for partition in patiently(connection, read_layout).partitions
        if (partition.topic, partition.number) in target and not partition.has_preferred_leader
    ]
    if wrong:
        hold(connection, wrong, unclean=False)


def wait_until_empty(connection: Connection, broker: int) -> None:
    """Until a broker holds and leads nothing, by the metadata and by its own folders. ClusterError if it still does."""
    give_up = time.monotonic() + SETTLE_SECONDS
    while held := patiently(connection, lambda admin: _held_by(admin, broker)):
        if time.monotonic() > give_up:
            raise ClusterError(f"broker {broker} still holds {names(held)}")
        time.sleep(POLL_SECONDS)


def _held_by(admin: KafkaAdminClient, broker: int) -> list[str]:
    layout = read_layout(admin)
    held = [f"{part.topic}-{part.number}" for part in layout.partitions if broker in part.replicas]
    if held or broker not in layout.alive:
        return held
    answers = admin.describe_log_dirs(brokers=[broker])
    return [f"{replica.topic}-{replica.partition}" for replica in replicas(answers)]


def in_progress(connection: Connection) -> list[Reassignment]:
    found = patiently(connection, lambda admin: admin.list_partition_reassignments())
    return sorted(
        Reassignment(key.topic, key.partition, state["replicas"], state["adding_replicas"], state["removing_replicas"])
        for key, state in found.items()
    )


def cancel(connection: Connection, running: Iterable[Reassignment]) -> None:
    """Back to the replicas there were before; what is done in the meantime stays as it is."""
    from kafka.errors import NoReassignmentInProgressError

    _alter(connection, {(row.topic, row.partition): None for row in running}, [NoReassignmentInProgressError])

"""The brokers of a cluster and where its partitions are, read once: what every command of an operator starts from.

A broker that has just died stays in the metadata for some seconds, and the admin client may turn to it. `patiently`
asks again with a fresh client, so what it is given to do must bear being done twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from millstream.cluster.answers import nearest
from millstream.cluster.connection import Connection
from millstream.cluster.errors import NotFound
from millstream.cluster.placement import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.2

Answer = TypeVar("Answer")


class Broker(NamedTuple):
    """A broker that the cluster knows; a fenced one is registered but not taking part."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Partition(NamedTuple):
    """One partition as the metadata has it. Without a leader it is offline."""

    topic: str
    number: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    internal: bool

    @property
    def under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == self.replicas[0]


class Layout(NamedTuple):
    """The cluster at one moment."""

    cluster_id: str
    controller: int | None
    voters: tuple[int, ...]
    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]

    @property
    def alive(self) -> dict[int, str | None]:
        """The brokers that can hold replicas, with their racks."""
        return {broker.id: broker.rack for broker in self.brokers if not broker.fenced}

    @property
    def topics(self) -> set[str]:
        return {partition.topic for partition in self.partitions}

    def placement(self, topics: Collection[str] | None = None) -> dict[TopicPartition, tuple[int, ...]]:
        return {
            (partition.topic, partition.number): partition.replicas
            for partition in self.partitions
            if topics is None or partition.topic in topics
        }

    def require_topic(self, topic: str, option: str = "--topic") -> None:
        if topic not in self.topics:
            hint = nearest(topic, self.topics) or " (`millstream topic list` shows them)"
            raise NotFound(f"{option}: there is no topic {topic!r}{hint}")

    def require_broker(self, broker: int, argument: str) -> None:
        if all(known.id != broker for known in self.brokers):
            known = ", ".join(str(broker.id) for broker in self.brokers)
            raise NotFound(f"{argument}: there is no broker {broker}; there are: {known}")


def patiently(connection: Connection, action: Callable[[KafkaAdminClient], Answer]) -> Answer:
    """What `action` returns, which is given an admin client, and a new one if a broker did not answer for now."""
    from kafka.errors import KafkaError

    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        with connection.admin() as admin:
            try:
                return action(admin)
            except KafkaError as error:
                if not error.retriable or time.monotonic() > give_up:
                    raise
        time.sleep(PAUSE_SECONDS)


def reason(error: type[Exception]) -> str:
    """A class of kafka-python's errors in words."""
    text = str(getattr(error, "description", "")).rstrip(".") or "no reason given"
    return f"{text} ({getattr(error, 'message', error)})"


def read_layout(admin: KafkaAdminClient) -> Layout:
    cluster = admin.describe_cluster()
    leader, voters = _quorum(admin)
    brokers = [
        Broker(node["broker_id"], node["host"], node["port"], node["rack"], bool(node.get("is_fenced")))
        for node in cluster["brokers"]
    ]
    partitions = [
        Partition(
            topic["name"],
            part["partition_index"],
            part["leader_id"] if part["leader_id"] >= 0 else None,
            tuple(part["replica_nodes"]),
            tuple(part["isr_nodes"]),
            topic["is_internal"],
        )
        for topic in admin.describe_topics()
        for part in topic["partitions"]
    ]
    return Layout(
        cluster["cluster_id"],
        cluster["controller_id"] if leader is None else leader,
        voters,
        tuple(sorted(brokers)),
        tuple(sorted(partitions, key=lambda partition: (partition.topic, partition.number))),
    )


def _quorum(admin: KafkaAdminClient) -> tuple[int | None, tuple[int, ...]]:
    """The controller and all voters. A broker's own answer to who the controller is names any broker (KIP-590)."""
    from kafka.errors import KafkaError

    try:
        (topic,) = admin.describe_metadata_quorum()["topics"]
    except (KafkaError, ValueError):  # clusters with ZooKeeper, or no permission
        return None, ()
    (partition,) = topic["partitions"]
    voters = tuple(voter["replica_id"] for voter in partition["current_voters"])
    return (partition["leader_id"] if partition["leader_id"] >= 0 else None), voters

"""Requests that the admin client has no method for: it sends any message of the protocol to any broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from millstream.cluster.errors import ClusterError
from millstream.cluster.graduation.plan import Partition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient


def send(admin: KafkaAdminClient, request: Any, node_id: int | None = None) -> Any:
    """The response of one broker, or of any if none is named."""

    async def exchange() -> Any:
        return await admin._manager.send(request, node_id=node_id)

    return admin._manager.run(exchange)


def leaders(admin: KafkaAdminClient, topics: Iterable[str]) -> dict[Partition, int]:
    """The leader of every partition of these topics; ClusterError if one has none."""
    found = {}
    names = sorted(set(topics))
    for topic in admin.describe_topics(names) if names else ():
        for part in topic["partitions"]:
            where = Partition(topic["name"], part["partition_index"])
            if part["leader_id"] < 0:
                raise ClusterError(f"{where} has no leader now; try again when its brokers are back")
            found[where] = part["leader_id"]
    return found


def offsets(
    admin: KafkaAdminClient, partitions: Iterable[Partition], timestamp: int, *, committed: bool = False
) -> dict[Partition, int]:
    """ListOffsets for many topics at once: -2 the log start, -1 the end (`committed`: the last stable offset)."""
    from kafka import TopicPartition
    from kafka.protocol.consumer import IsolationLevel

    asked = {TopicPartition(*where): timestamp for where in partitions}
    if not asked:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers: Mapping[Any, Any] = admin.list_partition_offsets(asked, level)
    return {Partition(where.topic, where.partition): answer.offset for where, answer in answers.items()}

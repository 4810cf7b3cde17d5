"""Elections of leaders: the preferred ones, or any that can be had for a partition that has none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.layout import patiently, read_layout, reason
from millstream.cluster.placement import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient


class Election(NamedTuple):
    """What an election did for one partition: `elected`, `not needed`, or why not."""

    topic: str
    partition: int
    leader_before: int | None
    leader: int | None
    result: str


def plan_election(connection: Connection, topic: str | None, *, unclean: bool) -> list[Election]:
    """The partitions that an election would be for: without their preferred leader, or (unclean) without any."""
    layout = patiently(connection, read_layout)
    if topic is not None:
        layout.require_topic(topic)
    return [
        Election(partition.topic, partition.number, partition.leader, None if unclean else partition.replicas[0], "")
        for partition in layout.partitions
        if topic in (None, partition.topic)
        and (partition.leader is None if unclean else not partition.has_preferred_leader)
    ]


def elect(connection: Connection, elections: Sequence[Election], *, unclean: bool) -> list[Election]:
    """Holds the elections, and says how each ended."""
    if not elections:
        return []
    results = hold(connection, [(row.topic, row.partition) for row in elections], unclean=unclean)
    leaders = {(part.topic, part.number): part.leader for part in patiently(connection, read_layout).partitions}
    return [
        row._replace(leader=leaders.get((row.topic, row.partition)), result=results[row.topic, row.partition])
        for row in elections
    ]


def hold(connection: Connection, keys: Collection[TopicPartition], *, unclean: bool) -> dict[TopicPartition, str]:
    """What became of each partition: `elected`, `not needed`, or why not."""
    from kafka import errors

    by_topic: dict[str, list[int]] = {}
    for topic, partition in keys:
        by_topic.setdefault(topic, []).append(partition)

    def ask(admin: KafkaAdminClient) -> Any:
        return admin.elect_leaders(1 if unclean else 0, by_topic, raise_errors=False)

    answer = patiently(connection, ask)
    top = errors.for_code(answer.error_code)
    if top is not errors.NoError:
        raise ClusterError(f"the election was refused: {reason(top)}")
    results = dict.fromkeys(keys, "elected")
    for topic in answer.replica_election_results:
        for part in topic.partition_result:
            error = errors.for_code(part.error_code)
            if error is errors.ElectionNotNeededError:
                results[topic.topic, part.partition_id] = "not needed"
            elif error is not errors.NoError:
                results[topic.topic, part.partition_id] = part.error_message or reason(error)
    return results

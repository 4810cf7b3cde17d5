"""How a cluster is, in one look: brokers, controller, partitions that lack replicas or a leader, groups and their lag.

`read` asks once. `Watch` keeps a client open and asks again and again, for a live view: it also knows how fast records
come in (the log end offsets of all topics but Kafka's own) and how fast groups take them out (the offsets that they
commit).

A cluster of which a part is down can still be looked at: what could not be found out is left empty, and `notes` says
why. A broker counts as up as long as the controller takes it for alive, so one that was killed is still up for
`broker.session.timeout.ms`.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

OFFSETS_MILLISECONDS = 5000

Positions = Mapping[tuple[str, int], int]


class BrokerStatus(NamedTuple):
    """One broker, as the controller sees it."""

    id: int
    address: str
    up: bool
    controller: bool
    leaders: int
    replicas: int


class PartitionStatus(NamedTuple):
    """A partition that lacks replicas or a leader."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class GroupStatus(NamedTuple):
    """One group; the lag is unknown where the log end is."""

    group: str
    state: str
    lag: int | None


class Status(NamedTuple):
    """The whole cluster at one moment."""

    cluster_id: str | None
    controller: int | None
    brokers: list[BrokerStatus]
    topics: int
    internal_topics: int
    partitions: int
    under_replicated: list[PartitionStatus]
    offline: list[PartitionStatus]
    groups: list[GroupStatus]
    records_in: float | None
    """Records a second; unknown at the first look."""
    records_out: float | None
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        lists = {
            name: [item._asdict() for item in getattr(self, name)]
            for name in ("brokers", "under_replicated", "offline", "groups")
        }
        return {**self._asdict(), **lists}


class Counts(NamedTuple):
    """What the rates are computed from."""

    moment: float
    ends: Positions
    committed: Mapping[tuple[str, str, int], int]


def read(connection: Connection) -> Status:
    """One look. Unreachable if no broker answers."""
    with connection.admin() as admin:
        return _look(admin, None)[0]


class Watch:
    """Looks again and again through one client; a context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stack = contextlib.ExitStack()
        self._admin: KafkaAdminClient | None = None
        self._before: Counts | None = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *failure: object) -> None:
        self._close()

    def look(self) -> Status:
        """ClusterError if the cluster does not answer; the next look connects anew."""
        from kafka.errors import KafkaError

        try:
            if self._admin is None:
                self._admin = self._stack.enter_context(self._connection.admin())
            status, self._before = _look(self._admin, self._before)
        except (KafkaError, ClusterError) as error:
            self._close()
            raise ClusterError(f"the cluster does not answer: {error}") from error
        return status

    def _close(self) -> None:
        self._admin = None
        self._stack.close()


def _look(admin: KafkaAdminClient, before: Counts | None) -> tuple[Status, Counts]:
    notes: list[str] = []
    cluster = admin.describe_cluster()
    topics = admin.describe_topics()
    controller = _controller(admin, cluster, notes)
    partitions = {
        (topic["name"], part["partition_index"]): PartitionStatus(
            topic["name"],
            part["partition_index"],
            part["leader_id"] if part["leader_id"] >= 0 else None,
            tuple(part["replica_nodes"]),
            tuple(part["isr_nodes"]),
        )
        for topic in sorted(topics, key=lambda topic: str(topic["name"]))
        for part in sorted(topic["partitions"], key=lambda part: int(part["partition_index"]))
    }
    internal = {topic["name"] for topic in topics if topic["is_internal"]}
    up = [broker["broker_id"] for broker in cluster["brokers"] if not broker.get("is_fenced", False)]
    groups, committed = _groups(admin, up, notes)
    ends = _ends(admin, partitions.values(), internal, notes)
    counts = _counts(before, ends, committed, partitions)
    status = Status(
        cluster["cluster_id"],
        controller,
        _brokers(cluster["brokers"], controller, partitions.values()),
        len(topics) - len(internal),
        len(internal),
        sum(topic not in internal for topic, _ in partitions),
        [part for part in partitions.values() if len(part.isr) < len(part.replicas)],
        [part for part in partitions.values() if part.leader is None],
        [GroupStatus(group, state, _lag(group, committed, ends)) for group, state in groups],
        None if before is None else _rate(before.ends, counts.ends, counts.moment - before.moment),
        None if before is None else _rate(before.committed, counts.committed, counts.moment - before.moment),
        notes,
    )
    return status, counts


def _controller(admin: KafkaAdminClient, cluster: Mapping[str, Any], notes: list[str]) -> int | None:
    """The leader of the metadata quorum: what brokers name as the controller in KRaft is any broker of them."""
    from kafka.errors import KafkaError

    try:
        (quorum,) = admin.describe_metadata_quorum()["topics"][0]["partitions"]
    except KafkaError as error:
        notes.append(f"the metadata quorum does not answer: {error}")
        return None
    leader: int = quorum["leader_id"]
    return leader if leader >= 0 else None


def _brokers(
    brokers: Iterable[Mapping[str, Any]], controller: int | None, partitions: Iterable[PartitionStatus]
) -> list[BrokerStatus]:
    parts = list(partitions)
    leaders = Counter(part.leader for part in parts)
    replicas = Counter(broker for part in parts for broker in part.replicas)
    return [
        BrokerStatus(
            broker["broker_id"],
            f"{broker['host']}:{broker['port']}",
            not broker.get("is_fenced", False),
            broker["broker_id"] == controller,
            leaders[broker["broker_id"]],
            replicas[broker["broker_id"]],
        )
        for broker in sorted(brokers, key=lambda broker: int(broker["broker_id"]))
    ]


def _groups(
    admin: KafkaAdminClient, brokers: list[int], notes: list[str]
) -> tuple[list[tuple[str, str]], dict[tuple[str, str, int], int]]:
    """The groups with their state, and what they have committed by group, topic and partition.

    Each broker is asked for the groups that it coordinates, so that one that is down hides no others.
    """
    from kafka.errors import KafkaError

    groups: list[tuple[str, str]] = []
    committed: dict[tuple[str, str, int], int] = {}
    for broker in brokers:
        try:
            found = [(group["group_id"], group.get("group_state") or "-") for group in admin.list_groups([broker])]
            offsets = admin.list_group_offsets([group for group, _ in found]) if found else {}
        except KafkaError as error:
            notes.append(f"broker {broker} does not say which groups it has: {error!r}")
            continue
        groups += found
        committed |= {
            (group, where.topic, where.partition): position.offset
            for group, positions in offsets.items()
            for where, position in positions.items()
            if position.offset >= 0
        }
    return sorted(groups), committed


def _ends(
    admin: KafkaAdminClient, partitions: Iterable[PartitionStatus], internal: set[str], notes: list[str]
) -> dict[tuple[str, int], int]:
    """The log end offsets of the partitions that have a leader, without those of Kafka's own topics."""
    from kafka import TopicPartition
    from kafka.errors import KafkaError

    by_leader: defaultdict[int, dict[TopicPartition, int]] = defaultdict(dict)
    for part in partitions:
        if part.leader is not None and part.topic not in internal:
            by_leader[part.leader][TopicPartition(part.topic, part.partition)] = -1
    ends = {}
    for leader, asked in sorted(by_leader.items()):
        try:
            found = admin.list_partition_offsets(asked, timeout_ms=OFFSETS_MILLISECONDS)
        except KafkaError as error:
            notes.append(f"broker {leader} does not say where its partitions end: {error!r}")
            continue
        ends.update({(where.topic, where.partition): answer.offset for where, answer in found.items()})
    return ends


def _lag(group: str, committed: Mapping[tuple[str, str, int], int], ends: Positions) -> int | None:
    lags = [
        None if (topic, part) not in ends else max(0, ends[topic, part] - offset)
        for (owner, topic, part), offset in committed.items()
        if owner == group
    ]
    return None if None in lags else sum(lag for lag in lags if lag is not None)


def _counts(
    before: Counts | None,
    ends: Positions,
    committed: Mapping[tuple[str, str, int], int],
    partitions: Collection[tuple[str, int]],
) -> Counts:
    """What could not be found out this time is as it was: it must not look like new when it is there again."""
    if before is not None:
        ends = {**{where: offset for where, offset in before.ends.items() if where in partitions}, **ends}
        committed = {**{key: offset for key, offset in before.committed.items() if key[1:] in partitions}, **committed}
    return Counts(time.monotonic(), ends, committed)


def _rate(before: Mapping[Any, int], after: Mapping[Any, int], seconds: float) -> float:
    """Per second; what is new counts from 0, what went back (deleted, made again) not at all."""
    return sum(max(0, offset - before.get(key, 0)) for key, offset in after.items()) / max(seconds, 0.001)

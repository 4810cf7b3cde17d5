"""Topics of any cluster: listed, made, described, changed, deleted, and cut off at an offset.

What only some brokers can tell (sizes, offsets of partitions without a leader) is None where it could not be had.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster import configs as configs_
from millstream.cluster.answers import INVALID_CONFIG, TOPIC_ALREADY_EXISTS, refuse
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError
from millstream.cluster.log_dirs import replicas
from millstream.cluster.positions import (
    Position,
    bounds,
    chosen_partitions,
    offsets_of,
    topic_partitions,
    unknown_topic,
)

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

READY_SECONDS = 15.0


class TopicSummary(NamedTuple):
    """A line of the list; `records` counts offsets, so markers and what compaction removed are in it."""

    name: str
    partitions: int
    replication_factor: int
    records: int | None
    size: int | None
    internal: bool
    configs: dict[str, str]


class Partition(NamedTuple):
    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    first_offset: int | None
    end_offset: int | None
    records: int | None
    size: int | None


class Topic(NamedTuple):
    name: str
    id: str | None
    internal: bool
    replication_factor: int
    configs: dict[str, str]
    partitions: list[Partition]


class Created(NamedTuple):
    """`created` is False if the topic was there already and that was allowed."""

    name: str
    created: bool
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class Truncation(NamedTuple):
    """What truncating does to one partition: the records from `first_offset` up to `before` go."""

    partition: int
    first_offset: int
    end_offset: int
    before: int
    records: int


def list_topics(connection: Connection, *, internal: bool = False) -> list[TopicSummary]:
    """All topics by name, without the internal ones unless they are asked for."""
    with connection.admin() as admin:
        found = [topic for topic in admin.describe_topics() if internal or not topic["is_internal"]]
        found.sort(key=lambda topic: str(topic["name"]))
        offsets = _all_offsets(admin, found)
        sizes = _sizes(admin, found)
        overrides = configs_.overrides(admin, [topic["name"] for topic in found])
    rows = []
    for topic in found:
        name, parts = topic["name"], topic["partitions"]
        places = [(name, part["partition_index"]) for part in parts]
        rows.append(
            TopicSummary(
                name,
                len(parts),
                _replication_factor(parts),
                _total(offsets[place][1] - offsets[place][0] if place in offsets else None for place in places),
                _total(sizes.get((*place, part["leader_id"])) for place, part in zip(places, parts, strict=True)),
                topic["is_internal"],
                overrides.get(name, {}),
            )
        )
    return rows


def describe_topic(connection: Connection, name: str) -> Topic:
    with connection.admin() as admin:
        topic = _described(admin, name)
        parts = sorted(topic["partitions"], key=lambda part: part["partition_index"])
        offsets = _all_offsets(admin, [topic])
        sizes = _sizes(admin, [topic])
        overrides = configs_.overrides(admin, [name]).get(name, {})
    partitions = []
    for part in parts:
        index, leader = part["partition_index"], part["leader_id"]
        first, end = offsets.get((name, index), (None, None))
        partitions.append(
            Partition(
                index,
                leader if leader >= 0 else None,
                part["replica_nodes"],
                part["isr_nodes"],
                first,
                end,
                None if first is None or end is None else end - first,
                sizes.get((name, index, leader)),
            )
        )
    return Topic(
        name, _id_text(topic["topic_id"]), topic["is_internal"], _replication_factor(parts), overrides, partitions
    )


def create_topic(
    connection: Connection,
    name: str,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    configs: Mapping[str, str] | None = None,
    if_not_exists: bool = False,
) -> Created:
    """Makes a topic and waits until every partition has its leader; None takes the cluster's default."""
    spec = {
        "num_partitions": partitions or -1,
        "replication_factor": replication_factor or -1,
        "configs": dict(configs or {}),
    }
    with connection.admin() as admin:
        answer = admin.create_topics({name: spec}, raise_errors=False)["topics"][0]
        code, message = answer["error_code"], answer["error_message"]
        if code == TOPIC_ALREADY_EXISTS:
            if not if_not_exists:
                raise ClusterError(f"there is a topic {name} already (--if-not-exists takes it as it is)")
            parts = _described(admin, name)["partitions"]
            return Created(
                name, False, len(parts), _replication_factor(parts), configs_.overrides(admin, [name]).get(name, {})
            )
        if code == INVALID_CONFIG and configs:
            plain = admin.create_topics({name: {}}, validate_only=True, raise_errors=False)["topics"][0]
            argument = "--config " + " ".join(f"{key}={value}" for key, value in configs.items())
            configs_.refuse_configs(configs, plain.get("configs", {}), code, message, argument)
        if code:
            refuse(f"topic {name}", code, message)
        wait_until_ready(admin, name, answer["num_partitions"] if answer["num_partitions"] > 0 else 1)
        parts = _described(admin, name)["partitions"]
    return Created(name, True, len(parts), _replication_factor(parts), dict(configs or {}))


def delete_topics(connection: Connection, names: Iterable[str]) -> None:
    """Deletes all of them; a name that does not exist stops it before anything is deleted."""
    wanted = list(dict.fromkeys(names))
    with connection.admin() as admin:
        known = admin.list_topics()
        for name in wanted:
            if name not in known:
                unknown_topic(name, known)
        for answer in admin.delete_topics(wanted, raise_errors=False)["topics"]:
            if answer["error_code"]:
                refuse(f"topic {answer['name']}", answer["error_code"], answer.get("error_message"))
        deadline = time.monotonic() + READY_SECONDS
        while set(wanted) & set(admin.list_topics()) and time.monotonic() < deadline:
            time.sleep(0.05)


def add_partitions(
    connection: Connection, name: str, *, to: int | None = None, add: int | None = None
) -> tuple[int, int]:
    """Grows a topic to `to` partitions, or by `add`; returns how many there were and are."""
    with connection.admin() as admin:
        before = len(topic_partitions(admin, name))
        total = to if to is not None else before + (add or 0)
        if total <= before:
            raise BadInput(
                f"--to {total}: {name} has {before} partitions, and a topic can only get more of them; "
                f"give {before + 1} or more"
            )
        (answer,) = admin.create_partitions({name: total}, raise_errors=False).results
        if answer.error_code:
            refuse(f"topic {name}", answer.error_code, answer.error_message)
        wait_until_ready(admin, name, total)
    return before, total


def plan_truncate(
    connection: Connection, name: str, before: Position, partitions: Iterable[int] = ()
) -> list[Truncation]:
    """What `truncate` would do; the cluster is not changed."""
    with connection.admin() as admin:
        chosen = chosen_partitions(name, topic_partitions(admin, name), partitions, "--partition")
        ends = bounds(admin, name, chosen)
        offsets = offsets_of(admin, name, before, ends)
    return [
        Truncation(partition, first, end, offsets[partition], offsets[partition] - first)
        for partition, (first, end) in ends.items()
    ]


def truncate(connection: Connection, name: str, plan: Iterable[Truncation]) -> None:
    """Deletes the records before the offsets of the plan."""
    from kafka import TopicPartition
    from kafka.errors import PolicyViolationError

    offsets = {TopicPartition(name, part.partition): part.before for part in plan if part.records}
    if not offsets:
        return
    with connection.admin() as admin:
        try:
            admin.delete_records(offsets)
        except PolicyViolationError as error:
            raise ClusterError(
                f"topic {name}: records can be deleted only from topics whose cleanup.policy has `delete` "
                f"(`millstream topic alter {name} --config cleanup.policy=compact,delete`)"
            ) from error


def wait_until_ready(admin: KafkaAdminClient, name: str, partitions: int) -> None:
    """Until that many partitions are known, have a leader and answer; a cluster says `made` a moment earlier."""
    from kafka.errors import KafkaError

    deadline = time.monotonic() + READY_SECONDS
    while True:
        (topic,) = admin.describe_topics([name])
        parts = topic["partitions"]
        if len(parts) >= partitions and all(part["leader_id"] >= 0 for part in parts):
            try:
                bounds(admin, name, [part["partition_index"] for part in parts])
            except (KafkaError, ClusterError):
                pass
            else:
                return
        if time.monotonic() > deadline:
            raise ClusterError(f"topic {name} was made, but not all of its partitions have a leader yet")
        time.sleep(0.02)


def _described(admin: KafkaAdminClient, name: str) -> dict[str, Any]:
    topic: dict[str, Any]
    (topic,) = admin.describe_topics([name])
    if topic["error_code"]:
        known = admin.list_topics()
        if name not in known:
            unknown_topic(name, known)
        refuse(f"topic {name}", topic["error_code"], None)
    return topic


def _id_text(topic_id: str | None) -> str | None:
    """As Kafka writes it: base64 without padding."""
    return topic_id and base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip("=")


def _replication_factor(partitions: Iterable[Mapping[str, Any]]) -> int:
    return max((len(part["replica_nodes"]) for part in partitions), default=0)


def _all_offsets(
    admin: KafkaAdminClient, topics: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, int], tuple[int, int]]:
    """First and end offset of every partition that has a leader."""
    from kafka import TopicPartition
    from kafka.errors import KafkaError

    places = [
        TopicPartition(topic["name"], part["partition_index"])
        for topic in topics
        for part in topic["partitions"]
        if part["leader_id"] >= 0
    ]
    if not places:
        return {}
    try:
        first = admin.list_partition_offsets(dict.fromkeys(places, -2))
        end = admin.list_partition_offsets(dict.fromkeys(places, -1))
    except KafkaError:  # one partition in trouble fails them all: better no numbers than no list
        return {}
    return {(place.topic, place.partition): (first[place].offset, end[place].offset) for place in places}


def _sizes(admin: KafkaAdminClient, topics: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int, int], int]:
    """Bytes on disk of each replica: (topic, partition, broker)."""
    from kafka.errors import KafkaError

    wanted = {topic["name"]: [part["partition_index"] for part in topic["partitions"]] for topic in topics}
    if not wanted:
        return {}
    try:
        answers = admin.describe_log_dirs(wanted)
    except KafkaError:  # a broker that is down, or no right to ask: sizes are a courtesy
        return {}
    return {
        (replica.topic, replica.partition, replica.broker): replica.size
        for replica in replicas(answers)
        if not replica.is_future
    }


def _total(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total

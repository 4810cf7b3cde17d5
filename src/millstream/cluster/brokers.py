"""What a cluster is made of: its identity and state, its brokers, and the APIs each of them speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.layout import Layout, patiently, read_layout
from millstream.cluster.log_dirs import replicas
from millstream.cluster.placement import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient


class ClusterInfo(NamedTuple):
    """A cluster in one look. `under_replicated` and `offline` name partitions as `topic-number`."""

    cluster_id: str
    version: str
    controller: int | None
    voters: list[int]
    brokers: list[int]
    fenced_brokers: list[int]
    topics: int
    internal_topics: list[str]
    partitions: int
    replicas: int
    under_replicated: list[str]
    offline: list[str]
    not_led_by_preferred: int
    features: dict[str, int]


class BrokerRow(NamedTuple):
    """One broker; the size is None where it does not say (it is down, or we may not ask)."""

    id: int
    host: str
    port: int
    rack: str | None
    state: str
    controller: bool
    leaders: int
    replicas: int
    size_bytes: int | None
    usable_bytes: int | None


class ApiRow(NamedTuple):
    """One API, and the versions that each broker speaks."""

    name: str
    key: int
    versions: str
    by_broker: dict[int, str]


def describe(connection: Connection) -> ClusterInfo:
    def look(admin: KafkaAdminClient) -> tuple[Layout, dict[str, Any], str]:
        layout = read_layout(admin)
        version = admin.get_broker_version_data(next(iter(layout.alive))).broker_version_str
        return layout, admin.describe_features(), version

    layout, features, version = patiently(connection, look)
    return ClusterInfo(
        layout.cluster_id,
        version,
        layout.controller,
        list(layout.voters),
        [broker.id for broker in layout.brokers],
        [broker.id for broker in layout.brokers if broker.fenced],
        len(layout.topics),
        sorted({partition.topic for partition in layout.partitions if partition.internal}),
        len(layout.partitions),
        sum(len(partition.replicas) for partition in layout.partitions),
        [f"{part.topic}-{part.number}" for part in layout.partitions if part.under_replicated],
        [f"{part.topic}-{part.number}" for part in layout.partitions if part.leader is None],
        sum(not part.has_preferred_leader for part in layout.partitions),
        {name: levels["finalized"][1] for name, levels in sorted(features.items()) if "finalized" in levels},
    )


def list_brokers(connection: Connection) -> list[BrokerRow]:
    def look(admin: KafkaAdminClient) -> tuple[Layout, dict[int, tuple[int | None, int | None]]]:
        layout = read_layout(admin)
        return layout, {broker: _log_dirs(admin, broker) for broker in layout.alive}

    layout, folders = patiently(connection, look)
    held = [broker for partition in layout.partitions for broker in partition.replicas]
    led = [partition.leader for partition in layout.partitions]
    return [
        BrokerRow(
            broker.id,
            broker.host,
            broker.port,
            broker.rack,
            "fenced" if broker.fenced else "up",
            broker.id == layout.controller,
            led.count(broker.id),
            held.count(broker.id),
            *folders.get(broker.id, (None, None)),
        )
        for broker in layout.brokers
    ] + _missing(layout, held)


def _missing(layout: Layout, held: list[int]) -> list[BrokerRow]:
    """Brokers that hold replicas and are not registered any more."""
    gone = sorted(set(held) - {broker.id for broker in layout.brokers})
    return [BrokerRow(id_, "-", 0, None, "down", False, 0, held.count(id_), None, None) for id_ in gone]


def _log_dirs(admin: KafkaAdminClient, broker: int) -> tuple[int | None, int | None]:
    """Bytes in the logs of a broker, and bytes free in their file systems."""
    from kafka.errors import KafkaError

    try:
        (answer,) = admin.describe_log_dirs(brokers=[broker])
    except KafkaError:
        return None, None
    folders = [folder for folder in answer["log_dirs"] if folder["error_code"] == 0]
    used = sum(part["partition_size"] for dir_ in folders for topic in dir_["topics"] for part in topic["partitions"])
    usable = [folder.get("usable_bytes", -1) for folder in folders]
    return used, (sum(usable) if usable and min(usable) >= 0 else None)


def partition_sizes(admin: KafkaAdminClient, brokers: Mapping[int, object]) -> dict[TopicPartition, int]:
    """The size of each partition's largest replica."""
    from kafka.errors import KafkaError

    sizes: dict[TopicPartition, int] = {}
    for broker in brokers:
        try:
            (answer,) = admin.describe_log_dirs(brokers=[broker])
        except KafkaError:
            continue
        for replica in replicas([answer]):
            key = (replica.topic, replica.partition)
            sizes[key] = max(sizes.get(key, 0), replica.size)
    return sizes


def list_apis(connection: Connection) -> list[ApiRow]:
    from kafka.protocol.api_key import ApiKey

    def look(admin: KafkaAdminClient) -> dict[int, dict[int, tuple[int, int]]]:
        brokers = read_layout(admin).alive
        return {broker: admin.get_broker_version_data(broker).api_versions for broker in brokers}

    spoken = patiently(connection, look)
    names = {int(key): key.name for key in ApiKey}
    rows = []
    for key in sorted({key for versions in spoken.values() for key in versions}):
        by_broker = {broker: _range(versions.get(key)) for broker, versions in spoken.items()}
        same = len(set(by_broker.values())) == 1
        versions = (
            next(iter(by_broker.values())) if same else ", ".join(f"{id_}: {text}" for id_, text in by_broker.items())
        )
        rows.append(ApiRow(names.get(key, f"API {key}"), int(key), versions, by_broker))
    return rows


def _range(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return "-"
    return str(versions[0]) if versions[0] == versions[1] else f"{versions[0]}-{versions[1]}"

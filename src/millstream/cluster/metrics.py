"""What a cluster does, measured from outside: records per second from two looks at the offsets, sizes, groups and lag.

Works on any Kafka, through its protocol alone. `scrape` reads a Prometheus page as well, Millstream's or another's.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from millstream.cluster.brokers import partition_sizes
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, Unreachable
from millstream.cluster.layout import Layout, patiently, read_layout

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

SCRAPE_SECONDS = 5.0
MAX_PAGE_BYTES = 64 * 1024 * 1024


class TopicMetrics(NamedTuple):
    """`records` counts offsets: compaction and markers make the real number smaller."""

    topic: str
    partitions: int
    records: int
    records_per_second: float
    size_bytes: int
    internal: bool


class GroupMetrics(NamedTuple):
    group: str
    state: str
    topics: int
    lag: int
    consumed_per_second: float


class ClusterMetrics(NamedTuple):
    brokers: int
    partitions: int
    under_replicated: int
    offline: int
    seconds: float
    records_per_second: float
    topics: list[TopicMetrics]
    groups: list[GroupMetrics]


class Sample(NamedTuple):
    """One line of a Prometheus page."""

    name: str
    labels: dict[str, str]
    value: float


class _Look(NamedTuple):
    at: float
    ends: dict[tuple[str, int], int]
    committed: dict[str, dict[tuple[str, int], int]]


def measure(connection: Connection, seconds: float) -> ClusterMetrics:
    """Two looks at the cluster, `seconds` apart."""
    layout = patiently(connection, read_layout)
    starts = patiently(connection, lambda admin: _offsets(admin, layout, earliest=True))
    groups = patiently(connection, lambda admin: {row["group_id"]: row["group_state"] for row in admin.list_groups()})
    first = patiently(connection, lambda admin: _look(admin, layout, groups))
    time.sleep(seconds)
    second = patiently(connection, lambda admin: _look(admin, layout, groups))
    sizes = patiently(connection, lambda admin: partition_sizes(admin, layout.alive))
    elapsed = second.at - first.at
    topics = []
    for topic in sorted(layout.topics):
        parts = [part for part in layout.partitions if part.topic == topic]
        keys = [(part.topic, part.number) for part in parts]
        written = sum(second.ends.get(key, 0) - first.ends.get(key, 0) for key in keys)
        topics.append(
            TopicMetrics(
                topic,
                len(keys),
                sum(second.ends.get(key, 0) - starts.get(key, 0) for key in keys),
                round(written / elapsed, 1),
                sum(sizes.get(key, 0) for key in keys),
                parts[0].internal,
            )
        )
    return ClusterMetrics(
        len(layout.alive),
        len(layout.partitions),
        sum(part.under_replicated for part in layout.partitions),
        sum(part.leader is None for part in layout.partitions),
        round(elapsed, 3),
        round(sum(topic.records_per_second for topic in topics if not topic.internal), 1),
        topics,
        [_group(group, state, first, second) for group, state in sorted(groups.items())],
    )


def _group(group: str, state: str, first: _Look, second: _Look) -> GroupMetrics:
    committed, before = second.committed[group], first.committed[group]
    lag = sum(max(0, second.ends[key] - offset) for key, offset in committed.items() if key in second.ends)
    consumed = sum(offset - before[key] for key, offset in committed.items() if key in before)
    rate = round(consumed / (second.at - first.at), 1)
    return GroupMetrics(group, state, len({topic for topic, _ in committed}), lag, rate)


def _look(admin: KafkaAdminClient, layout: Layout, groups: dict[str, str]) -> _Look:
    committed: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    found = admin.list_group_offsets(list(groups)) if groups else {}
    for group in groups:
        for key, position in found.get(group, {}).items():
            if position.offset >= 0:
                committed[group][key.topic, key.partition] = position.offset
        committed[group] = committed[group]
    return _Look(time.monotonic(), _offsets(admin, layout, earliest=False), dict(committed))


def _offsets(admin: KafkaAdminClient, layout: Layout, *, earliest: bool) -> dict[tuple[str, int], int]:
    from kafka.admin import OffsetSpec
    from kafka.structs import TopicPartition

    spec = OffsetSpec.EARLIEST if earliest else OffsetSpec.LATEST
    wanted = {TopicPartition(p.topic, p.number): spec for p in layout.partitions if p.leader is not None}
    if not wanted:
        return {}
    return {(key.topic, key.partition): found.offset for key, found in admin.list_partition_offsets(wanted).items()}


def scrape(url: str) -> list[Sample]:
    """The samples of a Prometheus page, without the buckets of histograms."""
    import urllib.error
    import urllib.request

    from prometheus_client.parser import text_string_to_metric_families

    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--metrics-url: {url!r} must begin with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as answer:
            page = answer.read(MAX_PAGE_BYTES).decode(errors="replace")
    except urllib.error.HTTPError as error:
        error.close()
        raise BadInput(f"--metrics-url: {url} answered {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        raise Unreachable(f"--metrics-url: {url} does not answer: {getattr(error, 'reason', error)}") from error
    try:
        return [
            Sample(sample.name, dict(sample.labels), sample.value)
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if not sample.name.endswith(("_bucket", "_created"))
        ]
    except ValueError as error:
        raise BadInput(f"--metrics-url: {url} is not a page of Prometheus metrics: {error}") from error

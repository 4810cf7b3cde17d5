"""How far the mirror is behind: what the source has, and what `mirror-offsets` on the target says was copied."""

from __future__ import annotations

import re
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from rich.table import Table

from example_kit.clients import patient
from example_kit.reading import read_topic
from mirror.copier import Cluster
from mirror.offsets import TOPIC, OffsetTable
from mirror.topics import matching

SECONDS = 30.0


@dataclass(frozen=True)
class Lag:
    """One partition."""

    topic: str
    partition: int
    start: int
    end: int
    copied: int

    @property
    def behind(self) -> int:
        return max(self.end - max(self.copied, self.start), 0)


def offset_table(source: Cluster, target: Cluster) -> OffsetTable:
    """What the target knows of the source."""
    table = OffsetTable(source.name)
    if TOPIC in AdminClient(patient(target.bootstrap)).list_topics(timeout=SECONDS).topics:
        for record in read_topic(target.bootstrap, TOPIC):
            table.apply(record.key() or b"", record.value())
    return table


def lags(source: Cluster, target: Cluster, topics: re.Pattern[str]) -> list[Lag]:
    """Each partition of the source's topics."""
    table = offset_table(source, target)
    admin = AdminClient(patient(source.bootstrap))
    found = matching(admin, topics)
    parts = [TopicPartition(topic, number) for topic, partitions in found.items() for number in range(partitions)]
    starts, ends = _offsets(admin, parts, OffsetSpec.earliest()), _offsets(admin, parts, OffsetSpec.latest())
    return [
        Lag(part.topic, part.partition, start, end, table.positions.get((part.topic, part.partition), 0))
        for part, start, end in zip(parts, starts, ends, strict=True)
    ]


def _offsets(admin: AdminClient, parts: list[TopicPartition], spec: OffsetSpec) -> list[int]:
    if not parts:
        return []
    answers = admin.list_offsets(dict.fromkeys(parts, spec), isolation_level=IsolationLevel.READ_COMMITTED)
    return [answers[part].result().offset for part in parts]


def lag_table(source: Cluster, target: Cluster, rows: list[Lag]) -> Table:
    table = Table(title=f"{source.name} to {target.name}", title_justify="left", box=None)
    for name in ("topic", "partition", "source end", "copied to", "lag"):
        table.add_column(name, justify="left" if name == "topic" else "right")
    for row in rows:
        table.add_row(row.topic, str(row.partition), f"{row.end:,}", f"{row.copied:,}", f"{row.behind:,}")
    return table

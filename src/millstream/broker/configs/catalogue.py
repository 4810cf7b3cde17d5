"""All configs, by name: the tables read, and which config stands in for which.

A row of a table is two lines, `name | type | default | legal values | importance | update | honoured` and a phrase:

- default: text, `''` for the empty text, `null` for none;
- legal values: nothing, `>= 1`, `1 .. 9`, `1 .. 9 or -1`, `one of a, b`, `in any case one of a, b` (texts),
  `different`, `different, at least one`, `any of a, b`, `some of a, b` (lists), `not empty`, `throttled replicas`,
  `offset reset`;
- update: `read-only`, `per-broker` or `cluster-wide`: whether a running broker takes a change, and at which level;
- honoured or accepted: whether this server acts on it or keeps it for compatibility; `internal` if Kafka hides it.

A topic config that is not set takes the value of its broker configs: the first of them that is set, else their default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from millstream.broker.configs import declaration as d
from millstream.broker.configs.tables import (
    broker_cluster,
    broker_groups,
    broker_log,
    broker_quota,
    broker_remote,
    broker_security,
    broker_server,
    broker_transactions,
    client_metrics,
    group,
    topic,
)

_RANGE: Final = re.compile(r"(?:>= (\S+))|(?:(\S+) \.\. (\S+?)(?: or (\S+))?)")
_NAMED: Final[Mapping[str, d.Valid]] = {
    "": d.ANYTHING,
    "different": d.Items(),
    "different, at least one": d.Items(may_be_empty=False),
    "not empty": d.NotEmpty(),
    "throttled replicas": d.ThrottledReplicas(),
    "offset reset": d.OffsetReset(),
}
_UPDATES: Final = {
    "read-only": d.Update.READ_ONLY,
    "per-broker": d.Update.PER_BROKER,
    "cluster-wide": d.Update.CLUSTER_WIDE,
}
_TYPES: Final = d.ConfigType.__members__
_IMPORTANCES: Final = d.Importance.__members__


def read_table(text: str) -> dict[str, d.Config]:
    """The configs of a table by name."""
    lines = text.strip("\n").split("\n")
    configs = {}
    for row, doc in zip(lines[::2], lines[1::2], strict=True):
        name, kind, default, legal, importance, update, status = (cell.strip() for cell in row.split("|"))
        configs[name] = d.Config(
            name,
            _TYPES[kind],
            {"null": None, "''": ""}.get(default, default),
            read_valid(legal),
            _IMPORTANCES[importance],
            _UPDATES[update],
            status.startswith("honoured"),
            doc.strip(),
            status.endswith("internal"),
        )
    return configs


def read_valid(legal: str) -> d.Valid:
    """The legal values of a config from their cell in the table."""
    named = _NAMED.get(legal)
    if named is not None:
        return named
    match = _RANGE.fullmatch(legal)
    if match is not None:
        at_least, low, high, except_for = (None if text is None else _number(text) for text in match.groups())
        return d.Range(at_least) if at_least is not None else d.Range(low or 0, high, except_for)
    words, _, names = legal.partition(" of ")
    values = tuple(names.split(", "))
    if words in ("one", "in any case one"):
        return d.OneOf(values, words != "one")
    return d.Items(values, {"any": True, "some": False}[words])


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


BROKER_CONFIGS: Final[Mapping[str, d.Config]] = {
    name: config
    for table in (
        broker_cluster.TABLE,
        broker_groups.TABLE,
        broker_log.TABLE,
        broker_remote.TABLE,
        broker_security.TABLE,
        broker_server.TABLE,
        broker_transactions.TABLE,
    )
    for name, config in read_table(table).items()
}
"""What a settings file may hold."""
BROKER_QUOTA_CONFIGS: Final[Mapping[str, d.Config]] = read_table(broker_quota.TABLE)
"""Broker configs that only a running broker takes."""
TOPIC_CONFIGS: Final[Mapping[str, d.Config]] = read_table(topic.TABLE)
GROUP_CONFIGS: Final[Mapping[str, d.Config]] = read_table(group.TABLE)
CLIENT_METRICS_CONFIGS: Final[Mapping[str, d.Config]] = read_table(client_metrics.TABLE)


class Synonym(NamedTuple):
    """A broker config that stands in for a topic config that is not set."""

    name: str
    factor: int = 1
    """What its value is multiplied by."""


_HOURS: Final = 3_600_000
_MINUTES: Final = 60_000
TOPIC_SYNONYMS: Final[Mapping[str, tuple[Synonym, ...]]] = {
    "cleanup.policy": (Synonym("log.cleanup.policy"),),
    "compression.gzip.level": (Synonym("compression.gzip.level"),),
    "compression.lz4.level": (Synonym("compression.lz4.level"),),
    "compression.type": (Synonym("compression.type"),),
    "compression.zstd.level": (Synonym("compression.zstd.level"),),
    "delete.retention.ms": (Synonym("log.cleaner.delete.retention.ms"),),
    "file.delete.delay.ms": (Synonym("log.segment.delete.delay.ms"),),
    "flush.messages": (Synonym("log.flush.interval.messages"),),
    "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": (Synonym("log.index.interval.bytes"),),
    "local.retention.bytes": (Synonym("log.local.retention.bytes"),),
    "local.retention.ms": (Synonym("log.local.retention.ms"),),
    "max.compaction.lag.ms": (Synonym("log.cleaner.max.compaction.lag.ms"),),
    "max.message.bytes": (Synonym("message.max.bytes"),),
    "message.timestamp.after.max.ms": (Synonym("log.message.timestamp.after.max.ms"),),
    "message.timestamp.before.max.ms": (Synonym("log.message.timestamp.before.max.ms"),),
    "message.timestamp.type": (Synonym("log.message.timestamp.type"),),
    "min.cleanable.dirty.ratio": (Synonym("log.cleaner.min.cleanable.ratio"),),
    "min.compaction.lag.ms": (Synonym("log.cleaner.min.compaction.lag.ms"),),
    "min.insync.replicas": (Synonym("min.insync.replicas"),),
    "preallocate": (Synonym("log.preallocate"),),
    "retention.bytes": (Synonym("log.retention.bytes"),),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTES),
        Synonym("log.retention.hours", _HOURS),
    ),
    "segment.bytes": (Synonym("log.segment.bytes"),),
    "segment.index.bytes": (Synonym("log.index.size.max.bytes"),),
    "segment.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOURS)),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOURS)),
    "unclean.leader.election.enable": (Synonym("unclean.leader.election.enable"),),
}
"""Topic config -> the broker configs that give its default, the strongest first."""

BROKER_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(synonym.name for synonym in synonyms)
    for topic_config, synonyms in TOPIC_SYNONYMS.items()
    if len(synonyms) > 1
    for name in ([s.name for s in synonyms] if topic_config != "flush.ms" else [synonyms[0].name])
}
"""Broker config -> the broker configs that mean the same in other units, the strongest first.

log.flush.scheduler.interval.ms is a default of log.flush.interval.ms, not the other way round.
"""

GROUP_SYNONYMS: Final[Mapping[str, str]] = {
    name: f"group.{name}" for name in GROUP_CONFIGS if f"group.{name}" in BROKER_CONFIGS
}
"""Group config -> the broker config that gives its default."""

"""Which configs of a topic go with it, and which are off while it is copied.

What was set on the topic itself goes with it. What the topic had from its cluster goes with it only if it decides
what a reader sees (`VISIBLE`): how a cluster stores and replicates is the target's own business. In both cases a
value is set only where the target would do something else by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FOREVER = str(2**63 - 1)
_COPY_MESSAGE_BYTES = 2 * 1024 * 1024
VISIBLE = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
    }
)
_OF_THE_CLUSTER = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})


def wanted(source: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """What is to be set at the target. `source` is DescribeConfigs' answer for the topic, `defaults` the target's
    own."""
    chosen = {}
    for name, entry in sorted(source.items()):
        own = entry["config_source"] in ("DYNAMIC_TOPIC_CONFIG", "TOPIC_CONFIG")
        if name in _OF_THE_CLUSTER or entry["value"] is None or not (own or name in VISIBLE):
            continue
        if (own or name in defaults) and defaults.get(name) != entry["value"]:
            chosen[name] = entry["value"]
    return chosen


def while_copying(final: Mapping[str, str], max_message_bytes: int) -> dict[str, str]:
    """The configs under which records of any age and size can arrive and nothing is deleted meanwhile."""
    return {
        **final,
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": _FOREVER,
        "message.timestamp.after.max.ms": _FOREVER,
        "max.message.bytes": str(max(max_message_bytes, _COPY_MESSAGE_BYTES)),
    }


def afterwards(final: Mapping[str, str]) -> dict[str, Any]:
    """The change from `while_copying` to the topic's own configs, for IncrementalAlterConfigs."""
    off = {name: ("DELETE", None) for name in while_copying({}, 0) if name not in final}
    return {**off, **final}

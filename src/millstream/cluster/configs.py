"""The configs of topics and brokers: what they are, where each value comes from, and how they are changed.

A resource is a kind and a name: `("topic", "clicks")`, `("broker", "1")`, or `("broker", "")` for what holds for all
brokers of the cluster (Kafka's dynamic default). A broker answers for itself; everything else any of them answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import INVALID_CONFIG, nearest, refuse
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, NotFound
from millstream.cluster.positions import unknown_topic

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

TOPIC, BROKER = 2, 4
DEFAULT_BROKER = ""
_KINDS = {"topic": TOPIC, "broker": BROKER}
_SET, _DELETE = 0, 1
_SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "static",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
"""Where a value comes from: set on the topic, the broker, all brokers; in the server's file; Kafka's own default."""


class Entry(NamedTuple):
    """One config as it is in force; `value` is None if it is not set or not to be shown."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool


class Change(NamedTuple):
    """One config before and after a change."""

    name: str
    before: str | None
    after: str | None
    source: str | None


def parse_assignments(texts: Iterable[str], argument: str) -> dict[str, str]:
    """`name=value` texts; BadInput, naming the argument, if one is not."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{argument}: {text!r} must be name=value, for example retention.ms=3600000")
        if name.strip() in found:
            raise BadInput(f"{argument}: {name.strip()} is given twice")
        found[name.strip()] = value
    return found


def get(connection: Connection, kind: str, name: str, keys: Iterable[str] = ()) -> list[Entry]:
    """All configs of a resource in order of their names, or the ones that are asked for."""
    with connection.admin() as admin:
        entries = describe(admin, kind, name)
        wanted = list(keys)
        for key in wanted:
            if key not in entries:
                refuse_key(kind, name, key, entries)
        return [entries[key] for key in wanted or sorted(entries)]


def brokers(connection: Connection) -> list[str]:
    """The ids of the brokers that are up."""
    with connection.admin() as admin:
        return [str(broker) for broker in broker_ids(admin)]


def change(
    connection: Connection,
    kind: str,
    name: str,
    values: Mapping[str, str],
    unset: Iterable[str] = (),
    *,
    dry_run: bool = False,
    argument: str = "",
) -> list[Change]:
    """Sets and unsets configs of one resource, all of them or none; `dry_run` only has the cluster check them.

    `argument` names the option in what a person reads when the cluster refuses.
    """
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    names = [*values, *unset]
    if len(set(names)) < len(names):
        raise BadInput(f"{next(key for key in names if names.count(key) > 1)} cannot be set and unset at once")
    operations: list[tuple[str, int, str | None]] = [(key, _SET, value) for key, value in values.items()]
    operations += [(key, _DELETE, None) for key in unset]
    with connection.admin() as admin:
        before = describe(admin, kind, name)
        request = IncrementalAlterConfigsRequest(
            resources=[(_KINDS[kind], name, operations)], validate_only=dry_run, min_version=0
        )
        (answer,) = _send(admin, request, kind, name).responses
        if answer.error_code:
            known = describe(admin, kind, name) if name != DEFAULT_BROKER else _any_broker(admin)
            refuse_configs(names, known, answer.error_code, answer.error_message, argument or f"{kind} {name}".strip())
        after = {} if dry_run else _after_change(admin, kind, name, values)
    changes = []
    for key in names:
        old, new = before.get(key), after.get(key)
        if dry_run:
            changes.append(Change(key, old.value if old else None, values.get(key), None))
        else:
            changes.append(
                Change(key, old.value if old else None, new.value if new else None, new.source if new else None)
            )
    return changes


def describe(admin: KafkaAdminClient, kind: str, name: str) -> dict[str, Entry]:
    """Every config of one resource; NotFound if there is no such resource."""
    from kafka.protocol.admin import DescribeConfigsRequest

    if kind == "broker" and name != DEFAULT_BROKER:
        check_broker(admin, name)
    request = DescribeConfigsRequest(resources=[(_KINDS[kind], name, None)], min_version=1)
    (answer,) = _send(admin, request, kind, name).results
    if answer.error_code:
        if kind == "topic":
            unknown_or_refused(admin, name, answer)
        refuse(f"{kind} {name}", answer.error_code, answer.error_message)
    return {config.name: _entry(config) for config in answer.configs}


def overrides(admin: KafkaAdminClient, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """What is set on each of these topics themselves."""
    from kafka.protocol.admin import DescribeConfigsRequest

    names = list(topics)
    if not names:
        return {}
    request = DescribeConfigsRequest(resources=[(TOPIC, name, None) for name in names], min_version=1)
    found = {}
    for answer in _send(admin, request, "topic", "").results:
        entries = map(_entry, answer.configs or ())
        found[answer.resource_name] = {
            entry.name: entry.value or "" for entry in entries if entry.source == _SOURCES[1]
        }
    return found


def broker_ids(admin: KafkaAdminClient) -> list[int]:
    """The brokers that are up."""
    return sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"] if not broker.get("is_fenced"))


def check_broker(admin: KafkaAdminClient, name: str) -> None:
    present = [str(broker) for broker in broker_ids(admin)]
    if name not in present:
        raise NotFound(f"no broker {name} is up: there are {', '.join(present)}, and `default` for all of them")


def refuse_key(kind: str, name: str, key: str, known: Iterable[str]) -> None:
    what = f"{kind} {name}".strip()
    raise NotFound(f"{what} has no config {key}{nearest(key, known)} (--all shows all that it has)")


def refuse_configs(
    names: Iterable[str], known: Mapping[str, Any], code: int, message: str | None, argument: str
) -> None:
    """Raises what the cluster has against configs: the name that is unknown, with the right one, or its own words."""
    if code == INVALID_CONFIG:
        for key in names:
            if key not in known and known:
                raise BadInput(f"{argument}: there is no config {key}{nearest(key, known)}")
    refuse(argument, code, message)


def unknown_or_refused(admin: KafkaAdminClient, topic: str, answer: Any) -> None:
    known = admin.list_topics()
    if topic not in known:
        unknown_topic(topic, known)
    refuse(f"topic {topic}", answer.error_code, answer.error_message)


def _after_change(admin: KafkaAdminClient, kind: str, name: str, values: Mapping[str, str]) -> dict[str, Entry]:
    """The configs once the broker shows the change: Apache Kafka's controller answers before the broker knows."""
    deadline = time.monotonic() + 5
    while True:
        entries = describe(admin, kind, name)
        shown = all(
            key in entries and (entries[key].sensitive or entries[key].value == value) for key, value in values.items()
        )
        if shown or time.monotonic() > deadline:
            return entries
        time.sleep(0.02)


def _any_broker(admin: KafkaAdminClient) -> dict[str, Entry]:
    """The names that a broker knows, for those of all brokers, which only lists what is set."""
    return describe(admin, "broker", str(broker_ids(admin)[0]))


def _entry(config: Any) -> Entry:
    source = _SOURCES.get(config.config_source, "unknown")
    return Entry(config.name, config.value, source, bool(config.read_only), bool(config.is_sensitive))


def _send(admin: KafkaAdminClient, request: Any, kind: str, name: str) -> Any:
    """The admin client's own calls lose the error of a resource that is not there and cannot name all brokers."""
    node = int(name) if kind == "broker" and name != DEFAULT_BROKER else None
    manager = admin._manager
    return manager.run(lambda: manager.send(request, node_id=node))

"""What must hold between broker configs, as tables: settings and dynamic changes are checked by the same rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from millstream.broker.configs.catalogue import BROKER_CONFIGS, BROKER_SYNONYMS, TOPIC_SYNONYMS
from millstream.broker.configs.listeners import parse_listeners, parse_protocol_map

NOT_GREATER: Final = (
    *(
        pair
        for kind in ("consumer", "share", "streams")
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for pair in (
            (f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"),
            (f"group.{kind}.min.{what}", f"group.{kind}.{what}"),
            (f"group.{kind}.{what}", f"group.{kind}.max.{what}"),
        )
    ),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
)
"""The first must not be greater than the second."""
LESS: Final = tuple(
    (f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")
    for kind in ("consumer", "share", "streams")
)
"""The first must be less than the second."""


def effective_number(values: Mapping[str, str], synonyms: tuple[str, ...]) -> int | float:
    """The number that counts among configs of one meaning: the strongest that is set, else the default."""
    factors = {s.name: s.factor for topic_synonyms in TOPIC_SYNONYMS.values() for s in topic_synonyms}
    for text in (values.get, lambda name: BROKER_CONFIGS[name].default):
        for name in synonyms:
            value = BROKER_CONFIGS[name].parse(text(name))
            if isinstance(value, int | float):
                return value * factors.get(name, 1)
    raise LookupError(synonyms)


def check_together(values: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with broker configs of which each by itself is right: the names it is about, and a sentence."""

    def number(name: str) -> int | float:
        return effective_number(values, BROKER_SYNONYMS.get(name, (name,)))

    for low, high in NOT_GREATER:
        if number(low) > number(high):
            yield (low, high), f"{low} ({number(low)}) must not be greater than {high} ({number(high)})"
    for low, high in LESS:
        if number(low) >= number(high):
            yield (low, high), f"{low} ({number(low)}) must be less than {high} ({number(high)})"
    if number("log.roll.ms") < 1:
        yield ("log.roll.ms", "log.roll.hours"), "log.roll.ms must be at least 1"
    if number("log.roll.jitter.ms") < 0:
        yield ("log.roll.jitter.ms", "log.roll.jitter.hours"), "log.roll.jitter.ms must be at least 0"
    if number("log.retention.ms") == 0:
        yield BROKER_SYNONYMS["log.retention.ms"], "log.retention.ms must be -1 or at least 1"
    queued, largest = number("queued.max.request.bytes"), number("socket.request.max.bytes")
    if 0 < queued < largest:
        yield (
            ("queued.max.request.bytes", "socket.request.max.bytes"),
            f"queued.max.request.bytes ({queued}) must be 0 or less, or at least socket.request.max.bytes ({largest})",
        )
    if values.get("broker.id", values.get("node.id")) != values.get("node.id"):
        yield ("broker.id", "node.id"), "broker.id and node.id are two names of one number and must be equal"
    if "," in values.get("log.dirs", ""):
        yield ("log.dirs",), "log.dirs must name one folder: this server keeps all its logs together"
    yield from _check_listeners(values)


def _check_listeners(values: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    def items(name: str) -> list[str]:
        value = BROKER_CONFIGS[name].parse(values.get(name, BROKER_CONFIGS[name].default))
        return value if isinstance(value, list) else []

    controllers = {name.upper() for name in items("controller.listener.names")}
    try:
        listeners = parse_listeners(items("listeners"), controllers)
    except ValueError as error:
        yield ("listeners",), f"listeners: {error}"
        return
    try:
        advertised = parse_listeners(items("advertised.listeners"), controllers)
    except ValueError as error:
        yield ("advertised.listeners",), f"advertised.listeners: {error}"
        return
    names = {listener.name for listener in listeners}
    for listener in advertised:
        if listener.host == "0.0.0.0":
            yield ("advertised.listeners",), "advertised.listeners: no client can reach 0.0.0.0"
        if listener.name not in names:
            yield ("advertised.listeners",), f"advertised.listeners: there is no listener named {listener.name}"
    name = "listener.security.protocol.map"
    try:
        protocols = parse_protocol_map(values.get(name, BROKER_CONFIGS[name].default or ""))
    except ValueError as error:
        yield (name,), f"{name}: {error}"
        return
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            yield (name, "listeners"), f"{name} has no security protocol for the listener {listener.name}"
        elif protocol != "PLAINTEXT":
            yield (
                ("listeners", name),
                f"listeners: {listener.name} is {protocol}, but this server speaks PLAINTEXT only",
            )

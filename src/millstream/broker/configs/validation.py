"""Whether configs that somebody wants to set may be set, with the error that Apache Kafka answers with.

Topic and group configs are INVALID_CONFIG. Broker configs are INVALID_REQUEST, because Kafka checks them on the broker
before its controller sees them (KAFKA-13609); only what the controller forbids is INVALID_CONFIG. A broker config that
is none of Kafka's is taken: it may belong to a plugin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from millstream.broker.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_QUOTA_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
)
from millstream.broker.configs.checks import check_together
from millstream.broker.configs.declaration import Config, InvalidValue, Update, Value
from millstream.broker.configs.effective import BrokerLevels
from millstream.broker.configs.settings import find_config
from millstream.wire.errors import ErrorCode, KafkaError

MAX_VALUE_LENGTH: Final = 32767
THREAD_POOLS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""May be halved or doubled by one change, not more."""
MATCH_ATTRIBUTES: Final = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)
_LISTENER_PREFIX: Final = "listener.name."


def validate_topic(levels: BrokerLevels, overrides: Mapping[str, str]) -> None:
    """KafkaError(INVALID_CONFIG) if a topic may not have these configs."""
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            _invalid(f"There is no topic config {name}")
    values = {name: _parse(TOPIC_CONFIGS[name], text) for name, text in overrides.items()}
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        values.setdefault(name, _parse(TOPIC_CONFIGS[name], levels.topic_default(name)))
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(low, int) and isinstance(high, int) and low > high:
        _invalid(f"min.compaction.lag.ms ({low}) must not be greater than max.compaction.lag.ms ({high})")
    if values.get("remote.storage.enable"):
        _invalid("remote.storage.enable cannot be true: this server has no remote log storage")
    _check_lengths(overrides)


def validate_group(levels: BrokerLevels, overrides: Mapping[str, str]) -> None:
    """KafkaError(INVALID_CONFIG) if a group may not have these configs."""
    for name in overrides:
        if name not in GROUP_CONFIGS:
            _invalid(f"There is no group config {name}")
    values = {
        name: _parse(config, overrides.get(name, levels.group_default(name))) for name, config in GROUP_CONFIGS.items()
    }
    for name, synonym in GROUP_SYNONYMS.items():
        if name.endswith("assignment.interval.ms") and name not in overrides:
            continue
        kind, rest = synonym.removeprefix("group.").split(".", 1)
        for bound, sign in ((f"group.{kind}.min.{rest}", 1), (f"group.{kind}.max.{rest}", -1)):
            limit, value = levels.value(bound) if bound in BROKER_CONFIGS else None, values[name]
            if isinstance(limit, int) and isinstance(value, int) and (value - limit) * sign < 0:
                _invalid(f"{name} ({value}) must be {'at least' if sign > 0 else 'at most'} {bound} ({limit})")
    standby, most = values["streams.num.standby.replicas"], levels.value("group.streams.max.standby.replicas")
    if isinstance(standby, int) and isinstance(most, int) and standby > most:
        _invalid(
            f"streams.num.standby.replicas ({standby}) must be at most group.streams.max.standby.replicas ({most})"
        )
    for kind in ("consumer", "share", "streams"):
        beat, session = values[f"{kind}.heartbeat.interval.ms"], values[f"{kind}.session.timeout.ms"]
        if isinstance(beat, int) and isinstance(session, int) and beat >= session:
            _invalid(f"{kind}.heartbeat.interval.ms ({beat}) must be less than {kind}.session.timeout.ms ({session})")
    _check_lengths(overrides)


def validate_client_metrics(overrides: Mapping[str, str]) -> None:
    """KafkaError if a client metrics subscription may not have these configs."""
    for name in overrides:
        if name not in CLIENT_METRICS_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no client metrics config {name}")
    values = {name: _parse(CLIENT_METRICS_CONFIGS[name], text) for name, text in overrides.items()}
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not 100 <= interval <= 3_600_000:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"interval.ms ({interval}) must be from 100 to 3600000")
    patterns = values.get("match")
    for pattern in patterns if isinstance(patterns, list) else ():
        name, _, expression = pattern.partition("=")
        if name.strip() not in MATCH_ATTRIBUTES or not expression or "=" in expression:
            _invalid(f"{pattern} must be attribute=pattern with one of {', '.join(sorted(MATCH_ATTRIBUTES))}")
        try:
            re.compile(expression.strip())
        except re.error:
            _invalid(f"{expression} is not a regular expression")
    _check_lengths(overrides)


def validate_broker(levels: BrokerLevels, props: Mapping[str, str], *, per_broker: bool) -> None:
    """KafkaError if a broker, or all brokers by default, may not have these dynamic configs."""
    for name, text in props.items():
        base = find_config(name) or BROKER_QUOTA_CONFIGS.get(name)
        if base is None:
            continue
        prefixed = base.name != name
        if base.update is Update.READ_ONLY and not prefixed:
            _refused(f"{name} cannot be changed while the broker runs")
        if base.name.startswith("ssl.") and base.update is Update.PER_BROKER and not prefixed:
            _refused(f"{name} can be changed only for a listener, as {_LISTENER_PREFIX}<name>.{name}")
        try:
            base.parse(text)
        except InvalidValue as error:
            _refused(str(error))
        if not per_broker and (base.update is Update.PER_BROKER or prefixed):
            _refused(f"{name} cannot be set for all brokers, only for one")
    if per_broker:
        new = BrokerLevels(props, levels.dynamic_default, levels.static)
    else:
        new = BrokerLevels(levels.dynamic, props, levels.static)
    for pool in THREAD_POOLS:
        old_count, new_count = levels.value(pool), new.value(pool)
        if not isinstance(old_count, int) or not isinstance(new_count, int):
            continue
        if not old_count // 2 <= new_count <= old_count * 2:
            _refused(f"{pool} cannot go from {old_count} to {new_count} at once, only to its half or its double")
    if new.text("listeners") != levels.text("listeners"):
        _refused("listeners cannot be changed while this server runs")
    for _, problem in check_together(new.merged()):
        _refused(problem)
    _check_lengths(props)


def validate_broker_transition(old: Mapping[str, str], new: Mapping[str, str], *, per_broker: bool) -> None:
    """What the controller forbids as long as eligible leader replicas are on (KIP-966)."""
    name = "min.insync.replicas"
    if per_broker and name in new:
        _invalid(f"{name} cannot be set for one broker while eligible leader replicas are on")
    if not per_broker and name in old and name not in new:
        _invalid(f"{name} cannot be removed for all brokers while eligible leader replicas are on")


def _parse(config: Config, text: str | None) -> Value:
    try:
        return config.parse(text)
    except InvalidValue as error:
        _invalid(str(error))


def _check_lengths(texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        if len(text) > MAX_VALUE_LENGTH:
            _invalid(f"The value of {name} is longer than {MAX_VALUE_LENGTH} characters")


def _invalid(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _refused(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)

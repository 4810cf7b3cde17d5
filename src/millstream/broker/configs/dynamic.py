"""The configs of a running broker: what is set for brokers, topics, groups and client metrics, on top of the settings.

Everything that is set is in the metadata store first and in memory after that; whoever has to act on a change
(`subscribe`) is told then. Reading a broker config costs a dictionary look-up: parsed values are kept until a change.

Topic configs are stored here as well, but the `Topics` own them: they change together with the topic.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final

from millstream.broker.configs import effective, validation
from millstream.broker.configs.catalogue import BROKER_CONFIGS
from millstream.broker.configs.declaration import Value
from millstream.broker.configs.effective import BrokerLevels, ConfigEntry
from millstream.broker.configs.settings import Settings
from millstream.broker.configs.typed import Text, Texts, TypedConfigs
from millstream.broker.groups.config import GroupConfig
from millstream.broker.store import MetadataStore
from millstream.broker.transactions.config import TransactionConfig
from millstream.log.config import LogConfig


class ResourceType(IntEnum):
    """What configs can belong to, with Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


ALL_BROKERS: Final = ""
"""The name of the resource whose configs hold for every broker."""


class DynamicConfigs(TypedConfigs):
    """The configs in effect, and how they are changed."""

    def __init__(self, settings: Settings, store: MetadataStore, node_id: int | None = None) -> None:
        self._settings = settings
        self._store = store
        self.node_id = settings.int("node.id") if node_id is None else node_id
        self._stored = store.configs()
        self._listeners: list[Callable[[ResourceType, Text], None]] = []
        self._parsed: dict[Text, Value] = {}
        self._set_up()
        self._apply()

    def _set_up(self) -> None:
        """A cluster with eligible leader replicas has min.insync.replicas set for all brokers from its first start."""
        name = "min.insync.replicas"
        defaults = self.overrides(ResourceType.BROKER, ALL_BROKERS)
        if name not in defaults and self._has_eligible_leader_replicas():
            value = self._settings.values.get(name, BROKER_CONFIGS[name].default or "1")
            self._save(ResourceType.BROKER, ALL_BROKERS, {**defaults, name: value})

    def _has_eligible_leader_replicas(self) -> builtins.bool:
        features = self._store.features()
        return not features or features.get("eligible.leader.replicas.version", 0) > 0

    def _apply(self) -> None:
        self.levels = BrokerLevels(
            self.overrides(ResourceType.BROKER, str(self.node_id)),
            self.overrides(ResourceType.BROKER, ALL_BROKERS),
            self._settings.values,
        )
        self._parsed.clear()
        self._default_log_config = self._log_config({})

    # --- reading -----------------------------------------------------------------------------------------------------

    def value(self, name: Text) -> Value:
        """The value in effect of a broker config."""
        if name not in self._parsed:
            self._parsed[name] = self.levels.value(name)
        return self._parsed[name]

    def overrides(self, kind: ResourceType, name: Text) -> Mapping[Text, Text]:
        """What is set for a resource itself."""
        return self._stored.get((int(kind), name), {})

    def resources(self, kind: ResourceType) -> Texts:
        """The names of the resources of a kind that have anything set."""
        return sorted(name for resource_type, name in self._stored if resource_type == kind)

    # --- values for the parts of the broker ------------------------------------------------------------------------

    def topic_log_config(self, overrides: Mapping[Text, Text]) -> LogConfig:
        """What a log of a topic with these configs goes by. Topics without any share one."""
        if not overrides:
            return self._default_log_config
        return self._log_config(overrides)

    def _log_config(self, overrides: Mapping[Text, Text]) -> LogConfig:
        texts = effective.topic_texts(self.levels, overrides)
        if "internal.segment.bytes" in texts:
            texts["segment.bytes"] = texts["internal.segment.bytes"]
        return LogConfig.from_properties(texts)

    def group_config(self) -> GroupConfig:
        return GroupConfig(**self._fields(GroupConfig._fields))

    def transaction_config(self) -> TransactionConfig:
        return TransactionConfig(**self._fields(TransactionConfig._fields))

    def _fields(self, names: Iterable[Text]) -> dict[Text, Any]:
        """Values for fields that bear the names of broker configs with underscores; other fields keep their default."""
        by_field = {name.replace(".", "_"): name for name in BROKER_CONFIGS}
        found = {}
        for field in names:
            if field in by_field:
                value = self.value(by_field[field])
                found[field] = tuple(value) if isinstance(value, list) else value
        return found

    # --- describing ------------------------------------------------------------------------------------------------

    def describe(self, kind: ResourceType, name: Text, keys: Iterable[Text] | None = None) -> Iterable[ConfigEntry]:
        """The configs of a resource, of all that Kafka knows for its kind."""
        overrides = self.overrides(kind, name)
        if kind is ResourceType.TOPIC:
            return effective.describe_topic(self.levels, overrides, keys)
        if kind is ResourceType.GROUP:
            return effective.describe_group(self.levels, overrides, keys)
        if kind is ResourceType.CLIENT_METRICS:
            return effective.describe_client_metrics(overrides, keys)
        if name == ALL_BROKERS:
            return effective.describe_broker_default(self.levels, keys)
        return effective.describe_broker(self.levels, keys)

    # --- changing --------------------------------------------------------------------------------------------------

    def validate(self, kind: ResourceType, name: Text, overrides: Mapping[Text, Text]) -> None:
        """KafkaError if these may not become the configs of the resource."""
        if kind is ResourceType.TOPIC:
            validation.validate_topic(self.levels, overrides)
        elif kind is ResourceType.GROUP:
            validation.validate_group(self.levels, overrides)
        elif kind is ResourceType.CLIENT_METRICS:
            validation.validate_client_metrics(overrides)
        elif kind is ResourceType.BROKER:
            per_broker = name != ALL_BROKERS
            validation.validate_broker(self.levels, overrides, per_broker=per_broker)
            if self._has_eligible_leader_replicas():
                validation.validate_broker_transition(self.overrides(kind, name), overrides, per_broker=per_broker)

    def replace(self, kind: ResourceType, name: Text, overrides: Mapping[Text, Text]) -> None:
        """Makes these the configs of a resource. They have been validated."""
        self._save(kind, name, overrides)
        if kind is ResourceType.BROKER:
            self._apply()
        for listener in self._listeners:
            listener(kind, name)

    def _save(self, kind: ResourceType, name: Text, overrides: Mapping[Text, Text]) -> None:
        self._store.replace_configs((int(kind), name), overrides)
        self.remember(kind, name, overrides)

    def remember(self, kind: ResourceType, name: Text, overrides: Mapping[Text, Text]) -> None:
        """Takes over what somebody else has stored: the configs of a topic that was created or deleted."""
        if overrides:
            self._stored[int(kind), name] = dict(overrides)
        else:
            self._stored.pop((int(kind), name), None)

    def subscribe(self, listener: Callable[[ResourceType, Text], None]) -> None:
        """`listener(kind, name)` is called whenever the configs of a resource have changed."""
        self._listeners.append(listener)

"""Which value of a config is in effect, where it comes from, and what else was said about it.

The levels of a broker config, the strongest first: set for this broker, set for all brokers, in the settings, default.
A topic or group config stands above the broker configs that are its synonyms. Sources and the order of synonyms are
those that Apache Kafka reports: it lists only synonyms from the first one on that bears the config's own broker name,
so that `segment.ms` shows none as long as only `log.roll.hours` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from millstream.broker.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_QUOTA_CONFIGS,
    BROKER_SYNONYMS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
)
from millstream.broker.configs.declaration import Config, Update, Value, parse_text, render
from millstream.broker.configs.settings import find_config


class Source(IntEnum):
    """Where a value comes from, with DescribeConfigs' numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Said(NamedTuple):
    """A value that was given to a config or to one that stands in for it."""

    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    """A config as it is described. A sensitive one never shows its value."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    type: int
    """A ConfigType, or 0 if the config is none of Kafka's."""
    doc: str | None
    synonyms: tuple[Said, ...]


class BrokerLevels:
    """What is set for the broker, level by level. Never changes: a change makes new levels, so answers can be kept."""

    def __init__(
        self, dynamic: Mapping[str, str], dynamic_default: Mapping[str, str], static: Mapping[str, str]
    ) -> None:
        self.dynamic = dynamic
        self.dynamic_default = dynamic_default
        self.static = static
        self.sources = (
            (dynamic, Source.DYNAMIC_BROKER),
            (dynamic_default, Source.DYNAMIC_DEFAULT_BROKER),
            (static, Source.STATIC_BROKER),
        )
        self._topic_defaults: dict[str, str | None] = {}

    def text(self, name: str) -> str | None:
        """The text in effect of one config, its synonyms left aside."""
        for level, _ in self.sources:
            if name in level:
                return level[name]
        config = BROKER_CONFIGS.get(name)
        return None if config is None else config.default

    def value(self, name: str) -> Value:
        config = BROKER_CONFIGS[name]
        return config.parse(self.text(name))

    def merged(self) -> dict[str, str]:
        """All that is set, the strongest level winning."""
        return {**self.static, **self.dynamic_default, **self.dynamic}

    def said(self, name: str, sensitive: bool) -> list[Said]:
        """All that was said about a broker config, the strongest first."""
        match = find_config(name)
        names = BROKER_SYNONYMS.get(name, (name,))
        if match is not None and match.name != name:
            names = (name, match.name)
        found = []
        for level, source in self.sources:
            found += [Said(key, None if sensitive else level[key], source) for key in names if key in level]
        for key in names:
            config = BROKER_CONFIGS.get(key)
            # Kafka has no default for what a node must be told.
            if config is not None and config.default is not None:
                found.append(Said(key, None if sensitive else config.default, Source.DEFAULT))
        first = next((index for index, said in enumerate(found) if said.name == name), len(found))
        return found[first:]

    def topic_default(self, name: str) -> str | None:
        """The text that a topic config has when the topic does not set it."""
        if name not in self._topic_defaults:
            self._topic_defaults[name] = self._find_topic_default(name)
        return self._topic_defaults[name]

    def _find_topic_default(self, name: str) -> str | None:
        for synonym in TOPIC_SYNONYMS.get(name, ()):
            value = self.value(synonym.name)
            if value is not None:
                if isinstance(value, int) and not isinstance(value, bool):
                    value *= synonym.factor
                    if name == "retention.ms" and value < 0:
                        value = -1
                return render(value)
        return TOPIC_CONFIGS[name].default

    def group_default(self, name: str) -> str | None:
        """The text that a group config has when the group does not set it."""
        synonym = GROUP_SYNONYMS.get(name)
        return GROUP_CONFIGS[name].default if synonym is None else render(self.value(synonym))


def topic_texts(levels: BrokerLevels, overrides: Mapping[str, str]) -> dict[str, str]:
    """All topic configs in effect, but those that are null."""
    texts = {name: overrides.get(name, levels.topic_default(name)) for name in TOPIC_CONFIGS}
    return {name: text for name, text in texts.items() if text is not None}


def describe_broker(levels: BrokerLevels, keys: Iterable[str] | None) -> list[ConfigEntry]:
    shown = {name for name, config in BROKER_CONFIGS.items() if not config.internal}
    return [_broker_entry(levels, name) for name in _wanted(shown.union(levels.merged()), keys)]


def describe_broker_default(levels: BrokerLevels, keys: Iterable[str] | None) -> list[ConfigEntry]:
    """What is set for all brokers; nothing else is listed."""
    entries = []
    for name in _wanted(set(levels.dynamic_default), keys):
        entry = _broker_entry(levels, name)
        synonyms = tuple(said for said in entry.synonyms if said.source is Source.DYNAMIC_DEFAULT_BROKER)
        value = None if entry.sensitive else levels.dynamic_default[name]
        source = synonyms[0].source if synonyms else Source.DEFAULT
        entries.append(entry._replace(value=value, source=source, synonyms=synonyms))
    return entries


def _broker_entry(levels: BrokerLevels, name: str) -> ConfigEntry:
    config = find_config(name) or BROKER_QUOTA_CONFIGS.get(name)
    sensitive = config is None or config.sensitive
    synonyms = tuple(levels.said(name, sensitive))
    return ConfigEntry(
        name,
        None if config is None or sensitive else _normal(config, levels.text(name)),
        synonyms[0].source if synonyms else Source.DEFAULT,
        config is None or config.name != name or config.update is Update.READ_ONLY,
        sensitive,
        0 if config is None or config.name != name else config.type,
        None if config is None else config.doc,
        synonyms,
    )


def describe_topic(
    levels: BrokerLevels, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    shown = {name for name, config in TOPIC_CONFIGS.items() if not config.internal}
    entries = []
    for name in _wanted(shown.union(overrides), keys):
        synonyms = TOPIC_SYNONYMS.get(name)
        said = levels.said(synonyms[0].name, False) if synonyms else []
        entries.append(_entry(TOPIC_CONFIGS[name], overrides, levels.topic_default(name), Source.TOPIC, said))
    return entries


def describe_new_topic(levels: BrokerLevels, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """As the answer to CreateTopics shows configs: values as they were given, and the level they really come from."""
    return [
        entry._replace(value=overrides.get(entry.name, entry.value), source=_true_source(levels, entry.name, overrides))
        for entry in describe_topic(levels, overrides)
    ]


def _true_source(levels: BrokerLevels, name: str, overrides: Mapping[str, str]) -> Source:
    if name in overrides:
        return Source.TOPIC
    synonyms = TOPIC_SYNONYMS.get(name, ())
    for level, source in levels.sources:
        if any(synonym.name in level for synonym in synonyms):
            return source
    return Source.DEFAULT


def describe_group(
    levels: BrokerLevels, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[ConfigEntry]:
    entries = []
    for name in _wanted(set(GROUP_CONFIGS), keys):
        config, synonym = GROUP_CONFIGS[name], GROUP_SYNONYMS.get(name)
        said = levels.said(synonym, False) if synonym else [Said(name, config.default, Source.DEFAULT)]
        entries.append(_entry(config, overrides, levels.group_default(name), Source.GROUP, said))
    return entries


def describe_client_metrics(overrides: Mapping[str, str], keys: Iterable[str] | None = None) -> list[ConfigEntry]:
    return [
        _entry(CLIENT_METRICS_CONFIGS[name], overrides, CLIENT_METRICS_CONFIGS[name].default, Source.CLIENT_METRICS, [])
        for name in _wanted(set(CLIENT_METRICS_CONFIGS), keys)
    ]


def _entry(
    config: Config, overrides: Mapping[str, str], default: str | None, source: Source, said: list[Said]
) -> ConfigEntry:
    value = _normal(config, overrides.get(config.name, default))
    if config.name in overrides:
        said = [Said(config.name, value, source), *said]
    own = said[0].source if said else Source.DEFAULT
    return ConfigEntry(config.name, value, own, False, False, config.type, config.doc, tuple(said))


def _normal(config: Config, text: str | None) -> str | None:
    """A text as Kafka prints it once it is parsed. An internal topic may have values that others may not."""
    return None if text is None else render(parse_text(config, text))


def _wanted(names: set[str], keys: Iterable[str] | None) -> list[str]:
    """The names to describe: all if no keys are given, or an empty list of them."""
    wanted = set(keys or ())
    return sorted(names & wanted if wanted else names)

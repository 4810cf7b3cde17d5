"""The server's settings: Kafka's broker configs from flags, environment and file, in this order of strength.

All of them are read and checked before any of them counts; what is wrong is reported at once, each line with its
source (`server.properties:12`, `KAFKA_NUM_PARTITIONS`, `--set num.partitions=x`), the name, and either the nearest
right name or what the setting takes. A name in the environment is written as in the images of Apache Kafka: `KAFKA_`
and the name in capitals, `_` for a dot, `__` for an underscore, `___` for a dash.

What a one-node cluster must be given to run at all (node.id, roles, replication factors of 1 for internal topics) is
taken as set, unless it is set otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from millstream.broker.configs.catalogue import BROKER_CONFIGS
from millstream.broker.configs.checks import check_together
from millstream.broker.configs.declaration import Config, InvalidValue, Value
from millstream.broker.configs.properties import MalformedProperties, read_properties
from millstream.broker.configs.typed import Text, TypedConfigs

ONE_NODE: Final[Mapping[str, str]] = {
    "controller.listener.names": "CONTROLLER",
    "node.id": "1",
    "offsets.topic.replication.factor": "1",
    "process.roles": "broker,controller",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
"""Taken as set: a cluster of one node cannot be run without them."""
ENVIRONMENT_PREFIX: Final = "KAFKA_"
NOT_SETTINGS: Final = re.compile(
    r"KAFKA_(VERSION|HOME|DEBUG|CLUSTER_ID|BOOTSTRAP_SERVERS|OPTS|HEAP_OPTS|JMX_(OPTS|PORT|HOSTNAME)"
    r"|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|(TOOLS_)?LOG4J_\w+"
    r"|PORT|PORT_\d+_\w+|SERVICE_(HOST|PORT)(_\w+)?)"
)
"""Variables of the official images, of the Java scripts and of Kubernetes, which are no broker configs."""
_LISTENER_CONFIG: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_PLUGIN_PREFIXES: Final = ("config.providers.", "rsm.config.", "rlmm.config.")


class SettingsError(ValueError):
    """Settings that cannot be used, one line for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Given(NamedTuple):
    """One setting as somebody wrote it."""

    name: str
    value: str
    source: str


class Settings(TypedConfigs):
    """Checked settings. Immutable; equal text gives equal settings."""

    def __init__(self, values: Mapping[Text, Text] | None = None) -> None:
        """From names and texts; SettingsError if any of them cannot be used."""
        self._values = _checked(Given(name, value, "setting") for name, value in (values or {}).items())

    @classmethod
    def load(
        cls,
        properties_file: Path | None = None,
        environ: Mapping[Text, Text] | None = None,
        overrides: Sequence[Text] = (),
    ) -> Settings:
        """From a file, variables and `name=value` flags, the later ones stronger; SettingsError names what is wrong."""
        settings = cls.__new__(cls)
        settings._values = _checked(
            [*_from_file(properties_file), *_from_environ(environ or {}), *_from_flags(overrides)]
        )
        return settings

    def replace(self, values: Mapping[Text, Text]) -> Settings:
        """The same settings but for some."""
        return Settings({**self._values, **values})

    @property
    def values(self) -> Mapping[Text, Text]:
        """What is set, by name, as it was written. Defaults are not in it."""
        return self._values

    def value(self, name: Text) -> Value:
        """The value in effect, by the type of the config."""
        config = BROKER_CONFIGS[name]
        return config.parse(self._values.get(name, config.default))


def _from_file(path: Path | None) -> Iterable[Given]:
    if path is None:
        return []
    try:
        text = path.read_text("utf-8")
        return [Given(p.name, p.value, f"{path}:{p.line}") for p in read_properties(text)]
    except OSError as error:
        raise SettingsError([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{path}: is not UTF-8 text"]) from error
    except MalformedProperties as error:
        raise SettingsError([f"{path}:{error.line}: {error}"]) from error


def _from_environ(environ: Mapping[str, str]) -> Iterable[Given]:
    return [
        Given(environment_to_name(variable), value, variable)
        for variable, value in sorted(environ.items())
        if variable.startswith(ENVIRONMENT_PREFIX) and not NOT_SETTINGS.fullmatch(variable)
    ]


def environment_to_name(variable: str) -> str:
    name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    return "_".join(part.replace("_", ".") for part in re.sub("___", "-", name).split("__"))


def _from_flags(flags: Sequence[str]) -> Iterable[Given]:
    given = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals or not name.strip():
            raise SettingsError([f"--set {flag}: must be name=value"])
        given.append(Given(name.strip(), value, f"--set {flag}"))
    return given


def find_config(name: str) -> Config | None:
    """The config that a setting's name stands for: its own, or for `listener.name.<listener>.` that behind it."""
    match = _LISTENER_CONFIG.fullmatch(name)
    base = match[1] if match else name
    if match:
        base = next((config for config in _MECHANISM_CONFIGS if base.endswith(config)), base)
    return BROKER_CONFIGS.get(base)


def _checked(given: Iterable[Given]) -> dict[str, str]:
    """The settings that count; SettingsError with all that is wrong."""
    problems = []
    values: dict[str, str] = {}
    sources: dict[str, str] = {}
    for name, value, source in given:
        config = find_config(name)
        if config is None and not name.startswith(_PLUGIN_PREFIXES):
            problems.append(f"{source}: there is no setting {name!r}{_nearest(name)}")
            continue
        if config is not None:
            try:
                config.parse(value)
            except InvalidValue:
                shown = "" if config.sensitive else f", not {value!r}"
                problems.append(f"{source}: {name} takes {config.expects()}{shown}")
                continue
        values[name] = value
        sources[name] = source
    values = (
        {**ONE_NODE, **values} if "broker.id" not in values else {**ONE_NODE, "node.id": values["broker.id"], **values}
    )
    values.setdefault("broker.id", values["node.id"])
    if not problems:
        problems += [
            f"{next((sources[name] for name in names if name in sources), names[0])}: {problem}"
            for names, problem in check_together(values)
        ]
    if problems:
        raise SettingsError(problems)
    return values


def _nearest(name: str) -> str:
    import difflib  # only here, and only once: it takes longer to load than all settings take to check

    matches = difflib.get_close_matches(name, BROKER_CONFIGS, 1, 0.6)
    return f"; the nearest is {matches[0]!r}" if matches else ""

"""The declared configs are those of Apache Kafka 4.3.1, as its own classes print them (`kafka_4_3_1.json`)."""

import json
from pathlib import Path
from typing import Any

import pytest

from millstream.broker.configs import catalogue
from millstream.broker.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_QUOTA_CONFIGS,
    BROKER_SYNONYMS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    read_table,
    read_valid,
)
from millstream.broker.configs.declaration import Items, OneOf, Range, Update, render
from millstream.broker.groups.config import GroupConfig
from millstream.broker.transactions.config import TransactionConfig
from millstream.log.config import LogConfig

KAFKA: dict[str, dict[str, dict[str, Any]]] = json.loads((Path(__file__).parent / "kafka_4_3_1.json").read_text())
TABLES = {"broker": BROKER_CONFIGS, "topic": TOPIC_CONFIGS, "group": GROUP_CONFIGS}
UPDATES = {
    "read-only": Update.READ_ONLY,
    "per-broker": Update.PER_BROKER,
    "cluster-wide": Update.CLUSTER_WIDE,
}


@pytest.mark.parametrize("kind", TABLES)
def test_names_are_kafkas(kind: str) -> None:
    assert sorted(TABLES[kind]) == sorted(KAFKA[kind])


@pytest.mark.parametrize("kind", TABLES)
def test_types_defaults_and_importance_are_kafkas(kind: str) -> None:
    declared = {
        name: (config.type.name, config.default, config.importance.name, config.internal)
        for name, config in TABLES[kind].items()
    }
    expected = {
        name: (facts["type"], facts["default"], facts["importance"], facts.get("internal", False))
        for name, facts in KAFKA[kind].items()
    }
    assert declared == expected


def test_what_a_running_broker_takes_is_what_kafkas_takes() -> None:
    assert {name: config.update for name, config in BROKER_CONFIGS.items()} == {
        name: UPDATES[facts["update"]] for name, facts in KAFKA["broker"].items()
    }


def test_group_synonyms_are_kafkas() -> None:
    expected = {name: facts["synonym"] for name, facts in KAFKA["group"].items() if "synonym" in facts}
    assert dict(GROUP_SYNONYMS) == expected


@pytest.mark.parametrize(
    "configs", [BROKER_CONFIGS, BROKER_QUOTA_CONFIGS, TOPIC_CONFIGS, GROUP_CONFIGS, CLIENT_METRICS_CONFIGS]
)
def test_every_default_is_legal_and_printed_as_it_is_declared(configs: dict[str, Any]) -> None:
    for config in configs.values():
        assert render(config.parse(config.default)) == config.default, config.name


def test_every_config_is_documented() -> None:
    for configs in (BROKER_CONFIGS, BROKER_QUOTA_CONFIGS, TOPIC_CONFIGS, GROUP_CONFIGS, CLIENT_METRICS_CONFIGS):
        assert [name for name, config in configs.items() if len(config.doc) < 8] == []


def test_synonyms_are_broker_configs_of_the_same_kind_of_value() -> None:
    for name, synonyms in TOPIC_SYNONYMS.items():
        assert name in TOPIC_CONFIGS
        for synonym in synonyms:
            assert synonym.name in BROKER_CONFIGS
    assert BROKER_SYNONYMS["log.retention.hours"][0] == "log.retention.ms"
    assert "log.flush.scheduler.interval.ms" not in BROKER_SYNONYMS


def test_what_is_said_to_be_honoured_is_used_somewhere() -> None:
    sources = Path(catalogue.__file__).parents[2]
    text = "\n".join(path.read_text() for path in sources.rglob("*.py") if path.parent.name != "tables")
    fields = {*GroupConfig._fields, *TransactionConfig._fields}
    through_topics = {
        synonym.name
        for name, synonyms in TOPIC_SYNONYMS.items()
        if name.replace(".", "_") in LogConfig.__dataclass_fields__
        for synonym in synonyms
    }
    unused = [
        name
        for name, config in BROKER_CONFIGS.items()
        if config.honoured
        and f'"{name}"' not in text
        and name.replace(".", "_") not in fields
        and name not in through_topics
        # Bounds of a group's configs are named after it, by rule.
        and not name.startswith(("group.consumer.min.", "group.consumer.max."))
    ]
    assert unused == []


def test_a_row_is_read() -> None:
    (config,) = read_table(
        "\na.b | INT | 5 | 1 .. 9 or -1 | LOW | per-broker | accepted internal\n    words\n"
    ).values()
    assert (config.name, config.default, config.update) == ("a.b", "5", Update.PER_BROKER)
    assert not config.honoured
    assert config.internal
    assert config.valid == Range(1, 9, -1)


@pytest.mark.parametrize(
    ("cell", "valid"),
    [
        (">= 0.5", Range(0.5)),
        ("-2 .. 7", Range(-2, 7)),
        ("one of a, b", OneOf(("a", "b"))),
        ("in any case one of a, b", OneOf(("a", "b"), any_case=True)),
        ("any of a, b", Items(("a", "b"))),
        ("some of a", Items(("a",), may_be_empty=False)),
        ("different, at least one", Items(may_be_empty=False)),
    ],
)
def test_legal_values_are_read(cell: str, valid: object) -> None:
    assert read_valid(cell) == valid


def test_a_cell_that_means_nothing_is_refused() -> None:
    with pytest.raises(KeyError):
        read_valid("whatever")

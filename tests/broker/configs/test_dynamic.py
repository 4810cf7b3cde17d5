"""Configs of a running broker: stored, in effect, told to those who asked."""

from pathlib import Path

import pytest

from millstream.broker.configs.dynamic import ALL_BROKERS, DynamicConfigs, ResourceType
from millstream.broker.configs.settings import Settings
from millstream.broker.store import IN_MEMORY, MetadataStore
from millstream.wire.errors import KafkaError


def fresh(**settings: str) -> DynamicConfigs:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return DynamicConfigs(Settings(named), MetadataStore(IN_MEMORY))


def test_min_insync_replicas_is_set_for_all_brokers_from_the_start() -> None:
    assert fresh().overrides(ResourceType.BROKER, ALL_BROKERS) == {"min.insync.replicas": "1"}
    configs = fresh(min_insync_replicas="2")
    assert configs.overrides(ResourceType.BROKER, ALL_BROKERS) == {"min.insync.replicas": "2"}


def test_typed_access_follows_a_change() -> None:
    configs = fresh()
    assert configs.int("message.max.bytes") == 1048588
    configs.replace(ResourceType.BROKER, "1", {"message.max.bytes": "5"})
    assert configs.int("message.max.bytes") == 5
    assert configs.bool("delete.topic.enable") is True
    assert configs.str("compression.type") == "producer"
    assert configs.list("group.consumer.assignors") == ["uniform", "range"]
    assert configs.float("log.cleaner.io.buffer.load.factor") == 0.9


def test_configs_of_another_broker_do_not_count() -> None:
    configs = fresh()
    configs.replace(ResourceType.BROKER, "2", {"message.max.bytes": "5"})
    assert configs.int("message.max.bytes") == 1048588


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    store = MetadataStore(tmp_path / "db")
    configs = DynamicConfigs(Settings(), store)
    configs.replace(ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    configs.replace(ResourceType.BROKER, ALL_BROKERS, {"message.max.bytes": "7"})
    store.close()
    again = DynamicConfigs(Settings(), MetadataStore(tmp_path / "db"))
    assert again.resources(ResourceType.GROUP) == ["g"]
    assert again.int("message.max.bytes") == 7


def test_listeners_are_told_after_the_change() -> None:
    configs = fresh()
    seen = []
    configs.subscribe(lambda kind, name: seen.append((kind, name, configs.int("message.max.bytes"))))
    configs.replace(ResourceType.BROKER, "1", {"message.max.bytes": "5"})
    assert seen == [(ResourceType.BROKER, "1", 5)]


def test_a_store_that_fails_changes_nothing() -> None:
    store = MetadataStore(IN_MEMORY)
    configs = DynamicConfigs(Settings(), store)
    store.close()
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        configs.replace(ResourceType.BROKER, "1", {"message.max.bytes": "5"})
    assert configs.int("message.max.bytes") == 1048588


def test_the_config_of_a_log() -> None:
    configs = fresh(log_retention_hours="1", log_segment_bytes="2000000")
    log_config = configs.topic_log_config({"cleanup.policy": "compact", "internal.segment.bytes": "100"})
    assert log_config.cleanup_policy == frozenset({"compact"})
    assert log_config.retention_ms == 3_600_000
    assert log_config.segment_bytes == 100
    assert configs.topic_log_config({}).segment_bytes == 2_000_000


def test_the_configs_of_the_coordinators() -> None:
    configs = fresh(group_initial_rebalance_delay_ms="7", transaction_max_timeout_ms="9")
    assert configs.group_config().group_initial_rebalance_delay_ms == 7
    assert configs.group_config().group_consumer_assignors == ("uniform", "range")
    assert configs.transaction_config().transaction_max_timeout_ms == 9


def test_an_empty_resource_is_no_resource() -> None:
    configs = fresh()
    configs.replace(ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    configs.replace(ResourceType.GROUP, "g", {})
    assert configs.resources(ResourceType.GROUP) == []

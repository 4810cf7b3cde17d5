"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs and ListConfigResources."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import create_topic, eventually, unique
from support.raw import RawClient

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT, _, _, GROUP_SOURCE = range(1, 9)


def describe(
    raw: RawClient, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **options: Any
) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    (answer,) = raw.call("describe_configs", version, resources=[resource], **options).results
    return answer


def value_of(raw: RawClient, kind: int, name: str, key: str) -> Any:
    (config,) = describe(raw, kind, name, [key]).configs
    return config.value, config.config_source


def alter(
    raw: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> Any:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    (answer,) = raw.call("incremental_alter_configs", 1, resources=[resource], validate_only=validate_only).responses
    return answer


class TestDescribe:
    @pytest.mark.parametrize("version", range(1, 5))
    def test_a_topics_configs(self, raw: RawClient, version: int) -> None:
        topic = create_topic(raw, retention_ms="5000")
        answer = describe(raw, TOPIC, topic.name, version=version)
        assert (answer.error_code, answer.resource_type, answer.resource_name) == (E.none, TOPIC, topic.name)
        configs = {config.name: config for config in answer.configs}
        assert configs["retention.ms"].value == "5000"
        assert configs["retention.ms"].config_source == DYNAMIC_TOPIC
        assert configs["retention.ms"].read_only is False
        assert configs["retention.ms"].is_sensitive is False
        assert configs["cleanup.policy"].value == "delete"
        assert configs["cleanup.policy"].config_source == DEFAULT
        if version >= 3:
            assert configs["retention.ms"].config_type == 5  # LONG
            assert configs["cleanup.policy"].config_type == 7  # LIST
            assert configs["preallocate"].config_type == 1  # BOOLEAN
            assert configs["compression.type"].config_type == 2  # STRING
            assert configs["segment.bytes"].config_type == 3  # INT
            assert configs["min.cleanable.dirty.ratio"].config_type == 6  # DOUBLE
            assert configs["retention.ms"].documentation is None

    def test_the_names_and_defaults_of_a_topics_configs(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        found = {config.name: config.value for config in describe(raw, TOPIC, topic.name).configs}
        assert found == {
            "cleanup.policy": "delete",
            "compression.gzip.level": "-1",
            "compression.lz4.level": "9",
            "compression.type": "producer",
            "compression.zstd.level": "3",
            "delete.retention.ms": "86400000",
            "file.delete.delay.ms": "60000",
            "flush.messages": "9223372036854775807",
            "flush.ms": "9223372036854775807",
            "follower.replication.throttled.replicas": "",
            "index.interval.bytes": "4096",
            "leader.replication.throttled.replicas": "",
            "local.retention.bytes": "-2",
            "local.retention.ms": "-2",
            "max.compaction.lag.ms": "9223372036854775807",
            "max.message.bytes": "1048588",
            "message.timestamp.after.max.ms": "3600000",
            "message.timestamp.before.max.ms": "9223372036854775807",
            "message.timestamp.type": "CreateTime",
            "min.cleanable.dirty.ratio": "0.5",
            "min.compaction.lag.ms": "0",
            "min.insync.replicas": "1",
            "preallocate": "false",
            "remote.log.copy.disable": "false",
            "remote.log.delete.on.disable": "false",
            "remote.storage.enable": "false",
            "retention.bytes": "-1",
            "retention.ms": "604800000",
            "segment.bytes": "1073741824",
            "segment.index.bytes": "10485760",
            "segment.jitter.ms": "0",
            "segment.ms": "604800000",
            "unclean.leader.election.enable": "false",
        }

    def test_only_the_keys_asked_for(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        answer = describe(raw, TOPIC, topic.name, ["retention.ms", "no.such.config"])
        assert [config.name for config in answer.configs] == ["retention.ms"]
        assert len(describe(raw, TOPIC, topic.name, []).configs) > 30

    def test_synonyms_say_where_a_value_comes_from(self, raw: RawClient) -> None:
        topic = create_topic(raw, retention_ms="5000")
        answer = describe(raw, TOPIC, topic.name, ["retention.ms", "segment.bytes"], include_synonyms=True)
        synonyms = {c.name: [(s.name, s.value, s.source) for s in c.synonyms] for c in answer.configs}
        assert synonyms["retention.ms"] == [("retention.ms", "5000", DYNAMIC_TOPIC)]
        assert synonyms["segment.bytes"] == [("log.segment.bytes", "1073741824", DEFAULT)]
        without = describe(raw, TOPIC, topic.name, ["retention.ms"])
        assert without.configs[0].synonyms == []

    def test_documentation_when_asked_for(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        answer = describe(raw, TOPIC, topic.name, ["retention.ms"], include_documentation=True)
        assert answer.configs[0].documentation

    def test_the_brokers_configs(self, raw: RawClient) -> None:
        answer = describe(raw, BROKER, "1")
        assert answer.error_code == E.none
        configs = {config.name: config for config in answer.configs}
        assert (configs["node.id"].value, configs["node.id"].config_source) == ("1", STATIC_BROKER)
        assert configs["node.id"].read_only is True
        assert configs["offsets.topic.num.partitions"].value == "3"
        assert configs["offsets.topic.num.partitions"].config_source == STATIC_BROKER
        assert configs["log.retention.bytes"].value == "-1"
        assert configs["log.retention.bytes"].config_source == DEFAULT
        assert configs["log.retention.bytes"].read_only is False
        assert configs["message.max.bytes"].value == "1048588"
        assert len(configs) > 100

    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "nowhere-at-all", E.unknown_topic_or_partition),
            (TOPIC, "a b", E.invalid_topic_exception),
            (BROKER, "2", E.invalid_request),
            (BROKER, "one", E.invalid_request),
            (99, "1", E.invalid_request),
            (GROUP, "", E.invalid_request),
        ],
    )
    def test_refused(self, raw: RawClient, kind: int, name: str, error: E) -> None:
        answer = describe(raw, kind, name)
        assert (answer.error_code, answer.configs) == (error, [])

    def test_a_groups_configs(self, raw: RawClient) -> None:
        answer = describe(raw, GROUP, unique("group"))
        assert answer.error_code == E.none
        configs = {config.name: (config.value, config.config_source) for config in answer.configs}
        assert configs["consumer.session.timeout.ms"] == ("45000", DEFAULT)
        assert configs["consumer.heartbeat.interval.ms"] == ("5000", DEFAULT)

    def test_the_default_of_all_brokers_is_empty_at_first(self, raw: RawClient) -> None:
        answer = describe(raw, BROKER, "", ["log.cleaner.threads"])
        assert answer.error_code == E.none


class TestIncrementalAlter:
    @pytest.mark.parametrize("version", [0, 1])
    def test_set_and_delete(self, raw: RawClient, version: int) -> None:
        topic = create_topic(raw)
        change = {"name": "retention.ms", "config_operation": SET, "value": "777"}
        resource = {"resource_type": TOPIC, "resource_name": topic.name, "configs": [change]}
        (answer,) = raw.call("incremental_alter_configs", version, resources=[resource]).responses
        assert (answer.error_code, answer.resource_type, answer.resource_name) == (E.none, TOPIC, topic.name)
        eventually(lambda: value_of(raw, TOPIC, topic.name, "retention.ms") == ("777", DYNAMIC_TOPIC))
        assert alter(raw, TOPIC, topic.name, ("retention.ms", DELETE, None)).error_code == E.none
        assert eventually(lambda: value_of(raw, TOPIC, topic.name, "retention.ms") == ("604800000", DEFAULT))

    def test_append_and_subtract_on_lists(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert alter(raw, TOPIC, topic.name, ("cleanup.policy", APPEND, "compact")).error_code == E.none
        eventually(lambda: value_of(raw, TOPIC, topic.name, "cleanup.policy") == ("delete,compact", DYNAMIC_TOPIC))
        assert alter(raw, TOPIC, topic.name, ("cleanup.policy", SUBTRACT, "delete")).error_code == E.none
        assert eventually(lambda: value_of(raw, TOPIC, topic.name, "cleanup.policy") == ("compact", DYNAMIC_TOPIC))

    def test_validate_only_changes_nothing(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert alter(raw, TOPIC, topic.name, ("retention.ms", SET, "1"), validate_only=True).error_code == E.none
        refused = alter(raw, TOPIC, topic.name, ("retention.ms", SET, "x"), validate_only=True)
        assert refused.error_code == E.invalid_config
        assert value_of(raw, TOPIC, topic.name, "retention.ms") == ("604800000", DEFAULT)

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            pytest.param([("no.such", SET, "1")], E.invalid_config, id="unknown name"),
            pytest.param([("retention.ms", SET, "soon")], E.invalid_config, id="not a number"),
            pytest.param([("cleanup.policy", SET, "burn")], E.invalid_config, id="not a choice"),
            pytest.param([("segment.bytes", SET, "13")], E.invalid_config, id="below the minimum"),
            pytest.param([("min.cleanable.dirty.ratio", SET, "1.5")], E.invalid_config, id="above the maximum"),
            pytest.param([("message.timestamp.type", SET, "Whenever")], E.invalid_config, id="bad timestamp type"),
            pytest.param([("retention.ms", SET, None)], E.invalid_request, id="null value"),
            pytest.param([("retention.ms", APPEND, "1")], E.invalid_config, id="append to a number"),
            pytest.param([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], E.invalid_request, id="twice"),
        ],
    )
    def test_refused_and_nothing_changed(
        self, raw: RawClient, changes: list[tuple[str, int, str | None]], error: E
    ) -> None:
        topic = create_topic(raw)
        answer = alter(raw, TOPIC, topic.name, ("flush.ms", SET, "5"), *changes)
        assert answer.error_code == error
        assert answer.error_message
        assert value_of(raw, TOPIC, topic.name, "flush.ms") == ("9223372036854775807", DEFAULT)

    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "nowhere-at-all", E.unknown_topic_or_partition),
            (BROKER, "2", E.invalid_request),
            (99, "x", E.invalid_request),
        ],
    )
    def test_unknown_resources(self, raw: RawClient, kind: int, name: str, error: E) -> None:
        assert alter(raw, kind, name, ("retention.ms", SET, "1")).error_code == error

    def test_a_broker_config_that_is_dynamic(self, raw: RawClient) -> None:
        assert alter(raw, BROKER, "1", ("log.cleaner.io.buffer.load.factor", SET, "0.8")).error_code == E.none
        eventually(lambda: value_of(raw, BROKER, "1", "log.cleaner.io.buffer.load.factor") == ("0.8", DYNAMIC_BROKER))
        assert alter(raw, BROKER, "1", ("log.cleaner.io.buffer.load.factor", DELETE, None)).error_code == E.none
        assert eventually(lambda: value_of(raw, BROKER, "1", "log.cleaner.io.buffer.load.factor") == ("0.9", DEFAULT))

    def test_a_default_for_all_brokers_shows_as_a_synonym_of_the_topics(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        assert alter(raw, BROKER, "", ("log.segment.delete.delay.ms", SET, "61000")).error_code == E.none
        try:
            eventually(
                lambda: value_of(raw, TOPIC, topic.name, "file.delete.delay.ms") == ("61000", DYNAMIC_DEFAULT_BROKER)
            )
            answer = describe(raw, TOPIC, topic.name, ["file.delete.delay.ms"], include_synonyms=True)
            assert [(s.name, s.value, s.source) for s in answer.configs[0].synonyms] == [
                ("log.segment.delete.delay.ms", "61000", DYNAMIC_DEFAULT_BROKER),
                ("log.segment.delete.delay.ms", "60000", DEFAULT),
            ]
        finally:
            alter(raw, BROKER, "", ("log.segment.delete.delay.ms", DELETE, None))
        assert eventually(lambda: value_of(raw, TOPIC, topic.name, "file.delete.delay.ms") == ("60000", DEFAULT))

    def test_a_read_only_broker_config(self, raw: RawClient) -> None:
        answer = alter(raw, BROKER, "1", ("offsets.topic.num.partitions", SET, "9"))
        assert answer.error_code == E.invalid_request

    def test_a_groups_config(self, raw: RawClient) -> None:
        group = unique("group")
        assert alter(raw, GROUP, group, ("consumer.session.timeout.ms", SET, "46000")).error_code == E.none
        assert eventually(lambda: value_of(raw, GROUP, group, "consumer.session.timeout.ms") == ("46000", GROUP_SOURCE))
        bad = alter(raw, GROUP, group, ("consumer.session.timeout.ms", SET, "1"))
        assert bad.error_code == E.invalid_config

    def test_an_unknown_operation_is_refused(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        answer = alter(raw, TOPIC, topic.name, ("retention.ms", 9, "1"))
        assert answer.error_code in (E.unknown_server_error, E.invalid_request)  # the former is Apache Kafka's
        assert value_of(raw, TOPIC, topic.name, "retention.ms") == ("604800000", DEFAULT)

    def test_one_resource_twice(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        change = {"name": "retention.ms", "config_operation": SET, "value": "5"}
        resource = {"resource_type": TOPIC, "resource_name": topic.name, "configs": [change]}
        response = raw.call("incremental_alter_configs", 1, resources=[resource, resource])
        assert {r.error_code for r in response.responses} == {E.invalid_request}


class TestAlter:
    @pytest.mark.parametrize("version", range(3))
    def test_replaces_all_configs_of_the_topic(self, raw: RawClient, version: int) -> None:
        topic = create_topic(raw, retention_ms="5000", flush_ms="100")
        configs = [{"name": "flush.ms", "value": "200"}]
        resource = {"resource_type": TOPIC, "resource_name": topic.name, "configs": configs}
        (answer,) = raw.call("alter_configs", version, resources=[resource]).responses
        assert answer.error_code == E.none
        eventually(lambda: value_of(raw, TOPIC, topic.name, "flush.ms") == ("200", DYNAMIC_TOPIC))
        assert value_of(raw, TOPIC, topic.name, "retention.ms") == ("604800000", DEFAULT)

    def test_validation_comes_first(self, raw: RawClient) -> None:
        topic = create_topic(raw, flush_ms="100")
        configs = [{"name": "retention.ms", "value": "x"}]
        resource = {"resource_type": TOPIC, "resource_name": topic.name, "configs": configs}
        (answer,) = raw.call("alter_configs", 2, resources=[resource]).responses
        assert answer.error_code == E.invalid_config
        assert value_of(raw, TOPIC, topic.name, "flush.ms") == ("100", DYNAMIC_TOPIC)


class TestListConfigResources:
    def listed(self, raw: RawClient, *types: int) -> set[tuple[int, str]]:
        response = raw.call("list_config_resources", 1, resource_types=list(types))
        assert response.error_code == E.none
        return {(resource.resource_type, resource.resource_name) for resource in response.config_resources}

    def test_by_type(self, raw: RawClient) -> None:
        topic, group = create_topic(raw), unique("group")
        alter(raw, GROUP, group, ("consumer.session.timeout.ms", SET, "46000"))
        eventually(lambda: (GROUP, group) in self.listed(raw, GROUP))
        assert (TOPIC, topic.name) in self.listed(raw, TOPIC)
        assert self.listed(raw, BROKER) == {(BROKER, "1")}
        assert self.listed(raw, BROKER_LOGGER) == {(BROKER_LOGGER, "1")}
        everything = self.listed(raw)
        assert {(TOPIC, topic.name), (GROUP, group), (BROKER, "1"), (BROKER_LOGGER, "1")} <= everything
        both = self.listed(raw, TOPIC, BROKER)
        assert {kind for kind, _ in both} == {TOPIC, BROKER}

    def test_version_0_lists_client_metrics_only(self, raw: RawClient) -> None:
        response = raw.call("list_config_resources", 0)
        assert (response.error_code, response.config_resources) == (E.none, [])

    def test_unknown_type(self, raw: RawClient) -> None:
        response = raw.call("list_config_resources", 1, resource_types=[77])
        assert response.error_code == E.unsupported_version

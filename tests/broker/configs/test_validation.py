"""Which configs may be set, and the errors for those that may not."""

from collections.abc import Mapping

import pytest

from millstream.broker.configs.effective import BrokerLevels
from millstream.broker.configs.settings import Settings
from millstream.broker.configs.validation import (
    validate_broker,
    validate_broker_transition,
    validate_client_metrics,
    validate_group,
    validate_topic,
)
from millstream.wire.errors import ErrorCode, KafkaError

LEVELS = BrokerLevels({}, {}, Settings().values)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"retention.ms": "-1"},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": ""},
        {"internal.segment.bytes": "100"},
        {"min.compaction.lag.ms": "9223372036854775807"},
        {"leader.replication.throttled.replicas": "*"},
    ],
)
def test_topic_configs_that_are_fine(overrides: Mapping[str, str]) -> None:
    validate_topic(LEVELS, overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {"no.such.config": "1"},
        {"num.partitions": "1"},
        {"retention.ms": "-2"},
        {"segment.bytes": "10"},
        {"compression.type": "none"},
        {"remote.storage.enable": "true"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"leader.replication.throttled.replicas": "0:1," * 9000 + "0:1"},
    ],
)
def test_topic_configs_that_are_not(overrides: Mapping[str, str]) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_topic(LEVELS, overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "overrides",
    [
        {"consumer.session.timeout.ms": "5"},
        {"consumer.session.timeout.ms": "100000"},
        {"consumer.heartbeat.interval.ms": "60000"},
        {"consumer.assignment.interval.ms": "20000"},
        {"streams.num.standby.replicas": "3"},
        {"share.auto.offset.reset": "never"},
        {"no.such.config": "1"},
    ],
)
def test_group_configs_that_are_not_fine(overrides: Mapping[str, str]) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_group(LEVELS, overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_group_configs_that_are_fine() -> None:
    validate_group(LEVELS, {"consumer.session.timeout.ms": "60000", "share.auto.offset.reset": "by_duration:P1D"})


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "x"}, ErrorCode.INVALID_CONFIG),
        ({"nothing": "1"}, ErrorCode.INVALID_REQUEST),
        ({"match": "planet=mars"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_client_metrics_that_are_not_fine(overrides: Mapping[str, str], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_client_metrics(overrides)
    assert caught.value.code is code


def test_client_metrics_that_are_fine() -> None:
    validate_client_metrics({"interval.ms": "100", "match": "client_id=a.*,client_source_port=90.*", "metrics": ""})


@pytest.mark.parametrize("per_broker", [True, False])
@pytest.mark.parametrize(
    "props",
    [
        {"num.partitions": "3"},
        {"log.retention.ms": "soon"},
        {"log.retention.ms": "0"},
        {"ssl.keystore.location": "x"},
        {"num.io.threads": "17"},
        {"num.io.threads": "3"},
        {"listeners": "PLAINTEXT://:1"},
        {"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"},
    ],
)
def test_broker_configs_that_are_not_fine(props: Mapping[str, str], per_broker: bool) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_broker(LEVELS, props, per_broker=per_broker)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "props", [{"log.retention.ms": "-1"}, {"num.io.threads": "16"}, {"some.plugin": "x"}, {"message.max.bytes": "9"}]
)
def test_broker_configs_that_are_fine(props: Mapping[str, str]) -> None:
    validate_broker(LEVELS, props, per_broker=True)
    validate_broker(LEVELS, props, per_broker=False)


def test_some_broker_configs_are_for_one_broker_only() -> None:
    props = {"listener.name.a.ssl.keystore.location": "x"}
    validate_broker(LEVELS, props, per_broker=True)
    with pytest.raises(KafkaError, match="only for one"):
        validate_broker(LEVELS, props, per_broker=False)


def test_min_insync_replicas_belongs_to_all_brokers() -> None:
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        validate_broker_transition({}, {"min.insync.replicas": "1"}, per_broker=True)
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        validate_broker_transition({"min.insync.replicas": "1"}, {}, per_broker=False)
    validate_broker_transition({"min.insync.replicas": "1"}, {"min.insync.replicas": "2"}, per_broker=False)

"""AlterConfigs and IncrementalAlterConfigs."""

import logging
from collections.abc import Sequence

import pytest

from millstream.broker.configs.dynamic import ResourceType
from millstream.wire.errors import ErrorCode
from millstream.wire.messages import alter_configs as legacy
from millstream.wire.messages import incremental_alter_configs as incremental
from support.admin_broker import AdminBroker

SET, DELETE, APPEND, SUBTRACT = range(4)
Op = tuple[str, int, str | None]


def alter(broker: AdminBroker, kind: int, name: str, *ops: Op, version: int = 1, validate_only: bool = False) -> int:
    configs = [incremental.AlterableConfig(name=n, config_operation=op, value=value) for n, op, value in ops]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (response,) = broker.call(request, incremental.IncrementalAlterConfigsResponse, version).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    assert bool(response.error_message) == bool(response.error_code)
    return response.error_code


def replace(
    broker: AdminBroker, kind: int, name: str, configs: Sequence[tuple[str, str | None]], version: int = 2
) -> int:
    values = [legacy.AlterableConfig(name=n, value=value) for n, value in configs]
    resource = legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=values)
    request = legacy.AlterConfigsRequest(resources=[resource])
    return broker.call(request, legacy.AlterConfigsResponse, version).responses[0].error_code


@pytest.fixture(autouse=True)
def _topic(broker: AdminBroker) -> None:
    broker.topics.create("t")


def overrides(broker: AdminBroker, kind: ResourceType = ResourceType.TOPIC, name: str = "t") -> dict[str, str]:
    return dict(broker.configs.overrides(kind, name))


@pytest.mark.parametrize("version", [0, 1])
def test_set_and_delete_reach_the_open_log(broker: AdminBroker, version: int) -> None:
    partition = broker.topics.partition("t", 0)
    assert partition is not None
    log = partition.log
    assert alter(broker, ResourceType.TOPIC, "t", ("retention.ms", SET, "5"), version=version) == 0
    assert log.config.retention_ms == 5
    assert alter(broker, ResourceType.TOPIC, "t", ("retention.ms", DELETE, None), version=version) == 0
    assert log.config.retention_ms == 604_800_000
    assert overrides(broker) == {}


def test_append_and_subtract(broker: AdminBroker) -> None:
    assert alter(broker, ResourceType.TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == 0
    assert overrides(broker) == {"cleanup.policy": "delete,compact"}
    assert alter(broker, ResourceType.TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == 0
    assert alter(broker, ResourceType.TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete,other")) == 0
    assert overrides(broker) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("kind", "name", "ops", "expected"),
    [
        (ResourceType.TOPIC, "t", [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.TOPIC, "t", [("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.TOPIC, "t", [("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.TOPIC, "t", [("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        (ResourceType.TOPIC, "t", [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (ResourceType.TOPIC, "t", [("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (ResourceType.TOPIC, "t", [("a", SET, "1"), ("a", SET, "1")], ErrorCode.INVALID_REQUEST),
        (ResourceType.TOPIC, "no", [("retention.ms", SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "no", [("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.TOPIC, "n o", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.TOPIC, "", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "1", [("num.partitions", SET, "2")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "2", [("log.retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "x", [("log.retention.ms", SET, "2")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "", [("log.retention.ms", APPEND, "2")], ErrorCode.INVALID_CONFIG),
        (ResourceType.BROKER, "1", [("min.insync.replicas", SET, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.BROKER, "", [("min.insync.replicas", DELETE, None)], ErrorCode.INVALID_CONFIG),
        (ResourceType.GROUP, "", [("consumer.session.timeout.ms", SET, "50000")], ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "g", [("consumer.session.timeout.ms", SET, "1")], ErrorCode.INVALID_CONFIG),
        (ResourceType.CLIENT_METRICS, "", [("interval.ms", SET, "1000")], ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "m", [("interval.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (0, "x", [("a", SET, "1")], ErrorCode.INVALID_REQUEST),
        (77, "x", [("a", SET, "1")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "1", [("no.such.logger", SET, "INFO")], ErrorCode.INVALID_CONFIG),
        (ResourceType.BROKER_LOGGER, "1", [("root", SET, "LOUD")], ErrorCode.INVALID_CONFIG),
        (ResourceType.BROKER_LOGGER, "1", [("root", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "1", [("root", APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "2", [("root", SET, "INFO")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused(broker: AdminBroker, kind: int, name: str, ops: list[Op], expected: ErrorCode) -> None:
    before = broker.store.configs()
    assert alter(broker, kind, name, *ops) == expected
    assert broker.store.configs() == before


def test_a_resource_changes_as_a_whole_or_not_at_all(broker: AdminBroker) -> None:
    ops: list[Op] = [("retention.ms", SET, "5"), ("segment.bytes", SET, "1")]
    assert alter(broker, ResourceType.TOPIC, "t", *ops) == ErrorCode.INVALID_CONFIG
    assert overrides(broker) == {}


def test_broker_defaults_reach_topics_that_do_not_set_them(broker: AdminBroker) -> None:
    broker.topics.create("own", configs={"retention.ms": "1"})
    assert alter(broker, ResourceType.BROKER, "", ("log.retention.ms", SET, "7")) == 0
    retention = {topic.name: topic.log_config.retention_ms for topic in broker.topics}
    assert retention == {"own": 1, "t": 7}


def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    assert alter(broker, ResourceType.TOPIC, "t", ("retention.ms", SET, "5"), validate_only=True) == 0
    assert overrides(broker) == {}


def test_a_resource_named_twice(broker: AdminBroker) -> None:
    resource = incremental.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="t")
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource, resource])
    responses = broker.call(request, incremental.IncrementalAlterConfigsResponse).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_logger(broker: AdminBroker) -> None:
    logger = logging.getLogger("millstream.test.logger")
    assert alter(broker, ResourceType.BROKER_LOGGER, "1", (logger.name, SET, "DEBUG")) == 0
    assert logger.level == logging.DEBUG
    assert alter(broker, ResourceType.BROKER_LOGGER, "1", (logger.name, DELETE, None), validate_only=True) == 0
    assert logger.level == logging.DEBUG
    assert alter(broker, ResourceType.BROKER_LOGGER, "1", (logger.name, DELETE, None)) == 0
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize("version", range(3))
def test_the_older_api_replaces_all(broker: AdminBroker, version: int) -> None:
    assert replace(broker, ResourceType.TOPIC, "t", [("retention.ms", "5"), ("flush.ms", "6")], version) == 0
    assert replace(broker, ResourceType.TOPIC, "t", [("flush.ms", "7")], version) == 0
    assert overrides(broker) == {"flush.ms": "7"}


def test_what_the_older_api_refuses(broker: AdminBroker) -> None:
    assert replace(broker, ResourceType.BROKER_LOGGER, "1", [("root", "INFO")]) == ErrorCode.INVALID_REQUEST
    assert replace(broker, ResourceType.TOPIC, "t", [("retention.ms", None)]) == ErrorCode.INVALID_REQUEST
    assert replace(broker, ResourceType.TOPIC, "t", [("no.such", "1")]) == ErrorCode.INVALID_CONFIG
    resource = legacy.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="t")
    request = legacy.AlterConfigsRequest(resources=[resource, resource])
    codes = [response.error_code for response in broker.call(request, legacy.AlterConfigsResponse).responses]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


def test_a_store_that_fails_changes_nothing(broker: AdminBroker) -> None:
    broker.store.close()
    assert alter(broker, ResourceType.TOPIC, "t", ("retention.ms", SET, "5")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert overrides(broker) == {}

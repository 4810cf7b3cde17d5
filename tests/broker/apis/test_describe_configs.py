"""DescribeConfigs."""

import pytest

from millstream.broker.configs.dynamic import ResourceType
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from support.admin_broker import AdminBroker


def describe(
    broker: AdminBroker,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = broker.call(request, DescribeConfigsResponse, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic(broker: AdminBroker, version: int) -> None:
    broker.topics.create("t", configs={"retention.ms": "5"})
    result = describe(broker, ResourceType.TOPIC, "t", version=version)
    values = {config.name: (config.value, config.config_source, config.config_type) for config in result.configs}
    assert len(values) == 33
    assert values["retention.ms"] == ("5", 1, 5 if version >= 3 else 0)


def test_synonyms_and_documentation_are_told_if_asked_for(broker: AdminBroker) -> None:
    broker.topics.create("t")
    (config,) = describe(broker, ResourceType.TOPIC, "t", ["max.message.bytes"]).configs
    assert (config.synonyms, config.documentation) == ([], None)
    (config,) = describe(
        broker, ResourceType.TOPIC, "t", ["max.message.bytes"], synonyms=True, documentation=True
    ).configs
    assert [(s.name, s.value, s.source) for s in config.synonyms] == [("message.max.bytes", "1048588", 5)]
    assert config.documentation


def test_the_broker_and_the_default_of_all_brokers(broker: AdminBroker) -> None:
    assert len(describe(broker, ResourceType.BROKER, "1").configs) == 340
    (config,) = describe(broker, ResourceType.BROKER, "").configs
    assert (config.name, config.value, config.config_source) == ("min.insync.replicas", "1", 3)


def test_groups_and_client_metrics_need_not_exist(broker: AdminBroker) -> None:
    assert len(describe(broker, ResourceType.GROUP, "any").configs) == 17
    assert len(describe(broker, ResourceType.CLIENT_METRICS, "any").configs) == 3


def test_loggers(broker: AdminBroker) -> None:
    configs = describe(broker, ResourceType.BROKER_LOGGER, "1").configs
    assert configs[0].name == "root"
    assert {config.config_source for config in configs} == {6}
    assert [config.name for config in describe(broker, ResourceType.BROKER_LOGGER, "1", ["root"]).configs] == ["root"]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (ResourceType.TOPIC, "no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "n o", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "one", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described(broker: AdminBroker, kind: int, name: str, expected: ErrorCode) -> None:
    result = describe(broker, kind, name)
    assert (result.error_code, result.configs) == (expected, [])

"""CreateTopics."""

from pathlib import Path
from typing import Any

import pytest

from millstream.wire.errors import ErrorCode
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.admin_broker import AdminBroker


def create(
    broker: AdminBroker, *topics: dict[str, Any], version: int = 7, validate_only: bool = False, **context: Any
) -> list[CreatableTopicResult]:
    wanted = [CreatableTopic(**{"num_partitions": 1, "replication_factor": 1, **topic}) for topic in topics]
    request = CreateTopicsRequest(topics=wanted, validate_only=validate_only)
    return broker.call(request, CreateTopicsResponse, version, **context).topics


def code(broker: AdminBroker, **topic: Any) -> int:
    (result,) = create(broker, {"name": "t", **topic})
    assert result.error_code == 0 or result.error_message
    return result.error_code


def assignment(*replicas: list[int]) -> dict[str, Any]:
    assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(replicas)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def configs(**values: str | None) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in values.items()]


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_there_when_the_response_is(broker: AdminBroker, version: int) -> None:
    (result,) = create(broker, {"name": "t", "num_partitions": 3}, version=version)
    assert (result.error_code, result.error_message) == (0, None)
    topic = broker.topics.get("t")
    assert topic is not None
    assert len(topic.partitions) == 3
    assert result.topic_id == (topic.topic_id if version >= 7 else ZERO_UUID)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))


def test_the_configs_of_the_new_topic_are_told(broker: AdminBroker) -> None:
    (result,) = create(broker, {"name": "t", "configs": configs(retention_ms="5")})
    assert result.configs is not None
    assert len(result.configs) == 33
    told = {config.name: (config.value, config.config_source) for config in result.configs}
    assert told["retention.ms"] == ("5", 1)
    assert told["min.insync.replicas"] == ("1", 3)
    assert told["segment.bytes"] == ("1073741824", 5)
    topic = broker.topics.get("t")
    assert topic is not None
    assert topic.log_config.retention_ms == 5


def test_defaults_are_the_brokers(tmp_path: Path) -> None:
    broker = AdminBroker(tmp_path, {"num.partitions": "4", "default.replication.factor": "2"})
    assert code(broker, num_partitions=-1) == 0
    assert broker.topics.partition_count("t") == 4
    assert code(broker, name="u", replication_factor=-1) == ErrorCode.INVALID_REPLICATION_FACTOR
    broker.stop()


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": 10_001}, ErrorCode.POLICY_VIOLATION),
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "x" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST),
        (assignment([2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assignment([1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assignment([]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({**assignment([1]), "num_partitions": 1}, ErrorCode.INVALID_REQUEST),
        ({"configs": configs(no_such="1")}, ErrorCode.INVALID_CONFIG),
        ({"configs": configs(retention_ms="x")}, ErrorCode.INVALID_CONFIG),
        ({"configs": configs(retention_ms=None)}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_made(broker: AdminBroker, topic: dict[str, Any], expected: ErrorCode) -> None:
    assert code(broker, **topic) == expected
    assert len(broker.topics) == 0


def test_a_manual_assignment(broker: AdminBroker) -> None:
    assert code(broker, **assignment([1], [1])) == 0
    assert broker.topics.partition_count("t") == 2


def test_a_gap_in_a_manual_assignment(broker: AdminBroker) -> None:
    gap = assignment([1])
    gap["assignments"][0].partition_index = 1
    assert code(broker, **gap) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_name_that_is_taken_or_collides(broker: AdminBroker) -> None:
    assert code(broker, name="a.b") == 0
    assert code(broker, name="a.b") == ErrorCode.TOPIC_ALREADY_EXISTS
    assert code(broker, name="a_b") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code(broker, name="a-b") == 0


def test_one_that_fails_does_not_keep_the_others(broker: AdminBroker) -> None:
    results = create(broker, {"name": "good"}, {"name": "b d"}, {"name": "twice"}, {"name": "twice"})
    assert {result.name: result.error_code for result in results} == {
        "good": 0,
        "b d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert list(broker.topics.topic_names()) == ["good"]


def test_validation_alone_makes_nothing(broker: AdminBroker) -> None:
    (result,) = create(broker, {"name": "t"}, validate_only=True)
    assert result.error_code == 0
    assert "t" not in broker.topics


def test_a_store_that_fails_makes_nothing(broker: AdminBroker) -> None:
    broker.store.close()
    assert code(broker) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" not in broker.topics


def test_the_quota_of_mutations(broker: AdminBroker) -> None:
    broker.quotas.replace({(("user", "ANONYMOUS"),): {"controller_mutation_rate": 1.0}})
    assert code(broker, num_partitions=20) == 0
    assert code(broker, name="u") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    request = CreateTopicsRequest(topics=[CreatableTopic(name="u", num_partitions=1, replication_factor=1)])
    old = broker.call(request, CreateTopicsResponse, 5)
    assert old.topics[0].error_code == 0
    assert old.throttle_time_ms == 10_000

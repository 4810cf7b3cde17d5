"""CreatePartitions."""

from typing import Any

import pytest

from millstream.wire.errors import ErrorCode
from millstream.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from support.admin_broker import AdminBroker


def expand(broker: AdminBroker, *topics: dict[str, Any], version: int = 3, validate_only: bool = False) -> list[int]:
    wanted = [CreatePartitionsTopic(**{"name": "t", **topic}) for topic in topics]
    request = CreatePartitionsRequest(topics=wanted, validate_only=validate_only)
    return [result.error_code for result in broker.call(request, CreatePartitionsResponse, version).results]


def assignments(*replicas: list[int]) -> list[CreatePartitionsAssignment]:
    return [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas]


@pytest.fixture(autouse=True)
def _topic(broker: AdminBroker) -> None:
    broker.topics.create("t", 2)


@pytest.mark.parametrize("version", range(4))
def test_more_partitions(broker: AdminBroker, version: int) -> None:
    assert expand(broker, {"count": 5}, version=version) == [0]
    assert broker.topics.partition_count("t") == 5
    partition = broker.topics.partition("t", 4)
    assert partition is not None
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ({"count": 2}, ErrorCode.INVALID_PARTITIONS),
        ({"count": 1}, ErrorCode.INVALID_PARTITIONS),
        ({"count": 20_000}, ErrorCode.POLICY_VIOLATION),
        ({"name": "no", "count": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"count": 3, "assignments": assignments([2])}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"count": 3, "assignments": assignments([1], [1])}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"count": 3, "assignments": assignments([1, 1])}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_refused(broker: AdminBroker, topic: dict[str, Any], expected: ErrorCode) -> None:
    assert expand(broker, topic) == [expected]
    assert broker.topics.partition_count("t") == 2


def test_a_topic_named_twice(broker: AdminBroker) -> None:
    assert expand(broker, {"count": 3}, {"count": 4}) == [ErrorCode.INVALID_REQUEST]


def test_a_manual_assignment(broker: AdminBroker) -> None:
    assert expand(broker, {"count": 3, "assignments": assignments([1])}) == [0]


def test_validation_alone_adds_nothing(broker: AdminBroker) -> None:
    assert expand(broker, {"count": 3}, validate_only=True) == [0]
    assert broker.topics.partition_count("t") == 2


def test_a_store_that_fails_adds_nothing(broker: AdminBroker) -> None:
    broker.store.close()
    assert expand(broker, {"count": 3}) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert broker.topics.partition_count("t") == 2


def test_the_quota_of_mutations(broker: AdminBroker) -> None:
    broker.quotas.replace({(("user", None),): {"controller_mutation_rate": 1.0}})
    assert expand(broker, {"count": 30}) == [0]
    assert expand(broker, {"count": 31}) == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]

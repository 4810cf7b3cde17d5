"""DeleteTopics."""

from pathlib import Path

import pytest

from millstream.wire.errors import ErrorCode
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from support.admin_broker import AdminBroker


def delete(broker: AdminBroker, *states: DeleteTopicState) -> list[DeletableTopicResult]:
    return broker.call(DeleteTopicsRequest(topics=list(states)), DeleteTopicsResponse, 6).responses


@pytest.mark.parametrize("version", range(1, 6))
def test_by_name(broker: AdminBroker, version: int) -> None:
    broker.topics.create("t")
    response = broker.call(DeleteTopicsRequest(topic_names=["t", "no"]), DeleteTopicsResponse, version)
    assert {result.name: result.error_code for result in response.responses} == {
        "t": 0,
        "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert "t" not in broker.topics


def test_by_id(broker: AdminBroker) -> None:
    topic = broker.topics.create("t")
    (result,) = delete(broker, DeleteTopicState(topic_id=topic.topic_id))
    assert (result.name, result.topic_id, result.error_code) == ("t", topic.topic_id, 0)
    (result,) = delete(broker, DeleteTopicState(topic_id=topic.topic_id))
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_folder_is_put_aside(broker: AdminBroker) -> None:
    topic = broker.topics.create("t")
    folder = Path(topic.partitions[0].log.directory)
    assert folder.exists()
    delete(broker, DeleteTopicState(name="t"))
    assert not folder.exists()
    assert [path.name for path in folder.parent.glob("t-0.*-delete")]


def test_a_topic_given_twice_is_not_deleted(broker: AdminBroker) -> None:
    topic = broker.topics.create("t")
    by_name, by_id = DeleteTopicState(name="t"), DeleteTopicState(topic_id=topic.topic_id)
    for states in ([by_name, by_name], [by_id, by_id], [by_name, by_id], [by_id, by_name]):
        results = delete(broker, *states)
        assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST]
    assert "t" in broker.topics


def test_a_topic_must_be_given_by_name_or_by_id(broker: AdminBroker) -> None:
    results = delete(broker, DeleteTopicState(), DeleteTopicState(name="t", topic_id=b"1" * 16))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert results[0].topic_id == ZERO_UUID


@pytest.mark.parametrize(
    ("version", "expected"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_forbidden(tmp_path: Path, version: int, expected: ErrorCode) -> None:
    broker = AdminBroker(tmp_path, {"delete.topic.enable": "false"})
    broker.topics.create("t")
    response = broker.call(DeleteTopicsRequest(topic_names=["t"]), DeleteTopicsResponse, version)
    assert [result.error_code for result in response.responses] == [expected]
    assert "t" in broker.topics
    broker.stop()


def test_a_store_that_fails_deletes_nothing(broker: AdminBroker) -> None:
    broker.topics.create("t")
    broker.store.close()
    (result,) = delete(broker, DeleteTopicState(name="t"))
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" in broker.topics


def test_the_quota_of_mutations(broker: AdminBroker) -> None:
    for name in "ab":
        broker.topics.create(name, 20)
    broker.quotas.replace({(("client-id", None),): {"controller_mutation_rate": 1.0}})
    results = delete(broker, DeleteTopicState(name="a"), DeleteTopicState(name="b"))
    assert {result.name: result.error_code for result in results} == {
        "a": 0,
        "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }

"""Topics: names, ids, partitions, configs, and what a crash leaves."""

from pathlib import Path

import pytest

from millstream.broker.configs.dynamic import ResourceType
from millstream.broker.topics import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
    is_internal,
    validate_name,
)
from millstream.wire.batches import Record, build_batch
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import uuid_text
from support.admin_broker import AdminBroker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def restarted(broker: AdminBroker, folder: Path) -> AdminBroker:
    broker.stop()
    return AdminBroker(folder)


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "...", "__consumer_offsets"])
def test_names_that_are_fine(name: str) -> None:
    validate_name(name)
    assert is_internal(name) == name.startswith("__")


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n"])
def test_names_that_are_not(name: str) -> None:
    with pytest.raises(KafkaError) as caught:
        validate_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_by_name_and_by_id(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 2)
    assert broker.topics.get("t") is broker.topics.get_by_id(topic.topic_id) is topic
    assert broker.topics.topic_id("t") == topic.topic_id
    assert broker.topics.topic_name(topic.topic_id) == "t"
    assert broker.topics.partition_count("t") == 2
    assert broker.topics.partition("t", 1) is topic.partitions[1]
    assert [repr(partition) for partition in broker.topics.partitions()] == ["t-0", "t-1"]
    broker.stop()


def test_what_is_not_there(folder: Path) -> None:
    topics = AdminBroker(folder).topics
    topics.create("t")
    assert topics.get("u") is topics.get_by_id(bytes(16)) is None
    assert (topics.topic_id("u"), topics.topic_name(b"1" * 16), topics.partition_count("u")) == (None, None, None)
    assert topics.partition("t", 1) is topics.partition("t", -1) is topics.partition("u", 0) is None


def test_a_folder_is_made_when_the_log_is_asked_for(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 2)
    assert topic.partitions[0].opened_log is None
    assert not (folder / "t-0").exists()
    log = topic.partitions[0].log
    assert (folder / "t-0").exists()
    assert not (folder / "t-1").exists()
    assert topic.partitions[0].log is topic.partitions[0].opened_log is log
    broker.stop()


def test_everything_is_there_after_a_restart(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 2, {"retention.ms": "-1"})
    topic.partitions[0].log.append(build_batch([Record(0, 0, None, b"v")]))
    broker = restarted(broker, folder)
    again = broker.topics.get("t")
    assert again is not None
    assert (again.topic_id, again.created_ms, len(again.partitions)) == (topic.topic_id, topic.created_ms, 2)
    assert again.overrides == {"retention.ms": "-1"}
    log = again.partitions[0].opened_log
    assert log is not None
    assert (log.log_end_offset, log.config.retention_ms) == (1, -1)
    broker.stop()


def test_a_folder_without_a_topic_is_swept_at_start(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t")
    topic.partitions[0].log.append(build_batch([Record(0, 0, None, b"v")]))
    broker.store.delete_topics(["t"])  # and then the process dies
    broker = restarted(broker, folder)
    assert not (folder / "t-0").exists()
    assert broker.topics.create("t").partitions[0].log.log_end_offset == 0
    broker.stop()


def test_a_topic_made_again_is_another_one(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 1, {"retention.ms": "5"})
    topic.partitions[0].log.append(build_batch([Record(0, 0, None, b"v")]))
    broker.topics.delete([topic])
    again = broker.topics.create("t")
    assert again.topic_id != topic.topic_id
    assert again.overrides == {}
    assert again.partitions[0].log.log_end_offset == 0
    broker.stop()


def test_changes_are_told(folder: Path) -> None:
    topics = AdminBroker(folder).topics
    told: list[tuple[str, str, int]] = []

    def listen(what: str, topic: Topic) -> None:
        told.append((what, topic.name, len(topic.partitions)))

    topics.on_created.append(lambda topic: listen("created", topic))
    topics.on_expanded.append(lambda topic: listen("expanded", topic))
    topics.on_deleted.append(lambda topic: listen("deleted", topic))
    topic = topics.create("t")
    topics.add_partitions({"t": 3})
    topics.delete([topic])
    assert told == [("created", "t", 1), ("expanded", "t", 3), ("deleted", "t", 3)]


def test_new_configs_reach_open_logs(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t")
    log = topic.partitions[0].log
    broker.topics.alter_configs("t", {"max.message.bytes": "5"})
    assert log.config.max_message_bytes == topic.log_config.max_message_bytes == 5
    broker.topics.alter_configs("t", {})
    broker.configs.replace(ResourceType.BROKER, "1", {"message.max.bytes": "6"})
    assert log.config.max_message_bytes == 6
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        broker.topics.alter_configs("t", {"max.message.bytes": "x"})
    assert log.config.max_message_bytes == 6
    broker.stop()


def test_names_that_collide(folder: Path) -> None:
    topics = AdminBroker(folder).topics
    topic = topics.create("a.b")
    with pytest.raises(KafkaError, match="collides"):
        topics.create("a_b")
    topics.delete([topic])
    topics.create("a_b")
    assert topics.colliding("a.b") == "a_b"
    assert topics.colliding("ab") is None


def test_partitions_of_a_topic_created_without_a_count(folder: Path) -> None:
    topics = AdminBroker(folder, {"num.partitions": "3"}).topics
    assert len(topics.create_automatically("t").partitions) == 3
    with pytest.raises(KafkaError) as caught:
        topics.create("u", 0)
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS


def test_internal_topics_have_their_own_settings(folder: Path) -> None:
    broker = AdminBroker(folder, {"offsets.topic.segment.bytes": "1000", "transaction.state.log.num.partitions": "7"})
    offsets = broker.topics.create_internal(GROUP_METADATA_TOPIC)
    assert (len(offsets.partitions), offsets.log_config.segment_bytes) == (50, 1000)
    assert offsets.log_config.compact
    transactions = broker.topics.create_automatically(TRANSACTION_STATE_TOPIC)
    assert len(transactions.partitions) == 7
    assert transactions.log_config.compression_type == "uncompressed"
    described = list(broker.configs.describe(ResourceType.TOPIC, GROUP_METADATA_TOPIC, ["segment.bytes"]))
    assert [entry.value for entry in described] == ["1000"]
    with pytest.raises(KafkaError):
        broker.topics.create_internal(SHARE_GROUP_STATE_TOPIC)
    broker.stop()


def test_ids_never_look_like_a_flag(folder: Path) -> None:
    topics = AdminBroker(folder).topics
    ids = {topics.new_id() for _ in range(500)}
    assert len(ids) == 500
    assert not [topic_id for topic_id in ids if uuid_text(topic_id).startswith("-")]


def test_a_log_that_cannot_be_opened_is_a_storage_error(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t")
    (folder / "t-0").write_text("in the way")
    with pytest.raises(KafkaError) as caught:
        _ = topic.partitions[0].log
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    (folder / "t-0").unlink()
    assert topic.partitions[0].log.log_end_offset == 0
    broker.stop()


def test_a_folder_that_cannot_be_put_aside_does_not_keep_the_topic(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 2)

    def fail(name: str, partition: int) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}-{partition}")

    monkeypatch.setattr(broker.logs, "delete", fail)
    broker.topics.delete([topic])
    assert "t" not in broker.topics
    assert broker.store.topics() == []
    broker.stop()


def test_a_thousand_partitions_cost_nothing_until_they_are_used(folder: Path) -> None:
    broker = AdminBroker(folder)
    topic = broker.topics.create("t", 1000)
    assert [p for p in topic.partitions if p.opened_log is not None] == []
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
    assert len(topic.partitions) == 1000
    broker.stop()

"""The metadata store: what is committed stays, what is not never was."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.broker.store import FILE_NAME, IN_MEMORY, SCHEMA_VERSION, MetadataStore, StoredTopic
from millstream.wire.errors import ErrorCode, KafkaError

A = StoredTopic("a", b"a" * 16, 3, 5)
B = StoredTopic("b", b"b" * 16, 1, 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def reopened(store: MetadataStore, path: Path) -> MetadataStore:
    store.close()
    return MetadataStore(path)


def test_topics_and_their_configs(path: Path) -> None:
    store = MetadataStore(path)
    store.create_topics([(B, {}), (A, {"retention.ms": "5"})])
    store.set_partitions({"a": 7})
    store = reopened(store, path)
    assert store.topics() == [A._replace(partitions=7), B]
    assert store.configs() == {(2, "a"): {"retention.ms": "5"}}
    store.delete_topics(["a"])
    store = reopened(store, path)
    assert store.topics() == [B]
    assert store.configs() == {}


def test_configs_are_replaced_as_a_whole(path: Path) -> None:
    store = MetadataStore(path)
    store.replace_configs((4, ""), {"a": "1", "b": "2"})
    store.replace_configs((4, ""), {"b": "3"})
    store.replace_configs((4, "1"), {"c": ""})
    assert reopened(store, path).configs() == {(4, ""): {"b": "3"}, (4, "1"): {"c": ""}}


def test_quotas_features_and_properties(path: Path) -> None:
    store = MetadataStore(path)
    entity = (("client-id", None), ("user", 'ü"'))
    store.replace_client_quotas({entity: {"x": 1.5}, (("ip", "1.1.1.1"),): {"y": 2.0}})
    store.replace_client_quotas({(("ip", "1.1.1.1"),): {}})
    store.replace_features({"f": 3}, 9)
    store.set_property("cluster.id", "c")
    store = reopened(store, path)
    assert store.client_quotas() == {entity: {"x": 1.5}}
    assert (store.features(), store.features_epoch()) == ({"f": 3}, 9)
    assert (store.property("cluster.id"), store.property("none")) == ("c", None)


def test_producer_ids_are_never_handed_out_twice(path: Path) -> None:
    store = MetadataStore(path)
    assert store.allocate_producer_ids(1000) == range(1000)
    store = reopened(store, path)
    assert store.allocate_producer_ids(10) == range(1000, 1010)


def test_one_transaction_is_all_or_nothing(path: Path) -> None:
    store = MetadataStore(path)
    store.create_topics([(A, {})])
    with pytest.raises(KafkaError) as caught:
        store.create_topics([(B, {"x": "y"}), (A, {})])
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert store.topics() == [A]
    assert store.configs() == {}
    store.create_topics([(B, {})])
    assert store.topics() == [A, B]


def test_a_second_server_is_refused_and_the_first_unharmed(path: Path) -> None:
    store = MetadataStore(path)
    with pytest.raises(KafkaError, match="in use by another server"):
        MetadataStore(path)
    store.set_property("x", "y")
    assert reopened(store, path).property("x") == "y"


def test_a_store_in_memory_is_gone_when_it_is_closed() -> None:
    store = MetadataStore(IN_MEMORY)
    store.create_topics([(A, {})])
    store.close()
    assert MetadataStore(IN_MEMORY).topics() == []


def test_a_newer_store_is_not_touched(path: Path) -> None:
    MetadataStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    with pytest.raises(KafkaError, match="newer version"):
        MetadataStore(path)


def test_a_file_that_is_no_store(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        MetadataStore(path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        MetadataStore(tmp_path / "none" / FILE_NAME)


def test_reads_of_a_closed_store_fail_clearly() -> None:
    store = MetadataStore(IN_MEMORY)
    store.close()
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        store.topics()


def test_a_process_that_is_killed_loses_nothing_it_committed(path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from millstream.broker.store import MetadataStore, StoredTopic\n"
        "store = MetadataStore(sys.argv[1])\n"
        "store.create_topics([(StoredTopic('a', b'a' * 16, 3, 5), {'x': 'y'})])\n"
        "store._db.execute('BEGIN IMMEDIATE')\n"
        "store._db.execute('DELETE FROM topics')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=60)
    assert ended.returncode == -9
    store = MetadataStore(path)
    assert (store.topics(), store.configs()) == ([A], {(2, "a"): {"x": "y"}})

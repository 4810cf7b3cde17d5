"""`millstream log dump` on the files that a running server keeps, Millstream's and Apache Kafka's own."""

import random
from typing import Any

import pytest

from millstream.cluster.connection import Connection
from support.cli import succeed
from support.cluster import Cluster, create_topic, produce, unique
from support.raw import RawClient

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_the_files_of_a_server_are_sound_and_readable(cluster: Cluster, raw: RawClient) -> None:
    if cluster.data_folder is None:
        pytest.skip("the data folder of a remote cluster is not here")
    topic = create_topic(raw, segment_bytes="1048576", index_interval_bytes="1000")
    connection = Connection(cluster.bootstrap_servers)
    noise = random.Random(1)
    for codec in CODECS:
        producer = connection.producer({"compression.type": codec, "enable.idempotence": True})
        for number in range(30):
            value = noise.randbytes(10_000) + codec.encode() * 2000  # partly worth compressing
            producer.produce(topic.name, value, key=b"%d" % number, headers=[("n", b"1")])
            producer.flush()
    transactional = connection.producer({"transactional.id": unique("txn")})
    transactional.init_transactions(30)
    for commit in (True, False):
        transactional.begin_transaction()
        transactional.produce(topic.name, b"in a transaction")
        transactional.flush()
        if commit:
            transactional.commit_transaction()
        else:
            transactional.abort_transaction()

    folder = cluster.data_folder / f"{topic.name}-0"
    files = succeed("log", "dump", str(folder), "--json").json
    assert [problem for file in files for problem in file["problems"]] == []
    kinds = [file["kind"] for file in files]
    assert kinds.count("segment") >= 2, "the segments were not rolled, so nothing of closed ones was seen"
    batches = [entry for file in files if file["kind"] == "segment" for entry in file["entries"]]
    assert {batch["compression"] for batch in batches} == set(CODECS)
    assert {"commit", "abort"} <= {batch["control"] for batch in batches}
    assert sum(batch["record_count"] for batch in batches) == 30 * len(CODECS) + 4
    assert all(batch["crc_ok"] for batch in batches)
    assert any(file["entries"] for file in files if file["kind"] == "offset index")
    assert any(file["entries"] for file in files if file["kind"] == "time index")
    (aborted,) = [entry for file in files if file["kind"] == "transaction index" for entry in file["entries"]]
    assert aborted["last_offset"] == aborted["first_offset"] + 1
    assert succeed("log", "dump", str(folder)).stdout.endswith(" files, no damage\n")


def decoded(cluster: Cluster, topic: str, what: str) -> list[dict[str, Any]]:
    """Every record of an internal topic, markers left out; one that cannot be read is a failure."""
    assert cluster.data_folder is not None
    entries = [
        entry
        for folder in cluster.data_folder.glob(f"{topic}-*")
        for file in succeed("log", "dump", str(folder), "--decode", what, "--json").json
        for entry in file["entries"]
    ]
    markers = {entry["position"] for entry in entries if entry.get("control")}
    records = [entry for entry in entries if "decoded" in entry and entry["batch"] not in markers]
    assert all(record["decoded"] is not None for record in records)
    return [record["decoded"] for record in records]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_records_of_groups_are_readable(cluster: Cluster, raw: RawClient, protocol: str) -> None:
    if cluster.data_folder is None:
        pytest.skip("the data folder of a remote cluster is not here")
    topic, group = create_topic(raw), unique("group")
    produce(raw, topic, b"a", b"b")
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Connection(cluster.bootstrap_servers).consumer(settings)
    consumer.subscribe([topic.name])
    assert len(consumer.consume(2, 30)) == 2
    consumer.commit(asynchronous=False)
    consumer.close()
    mine = [record for record in decoded(cluster, "__consumer_offsets", "offsets") if group in record["key"].values()]
    commits = [record["value"] for record in mine if record["type"] == "OffsetCommit"]
    assert 2 in [commit["offset"] for commit in commits]
    members = [record["value"] for record in mine if record["type"] == "ConsumerGroupMemberMetadata"]
    if protocol == "consumer":
        assert members[0]["subscribed_topic_names"] == [topic.name]
        assert members[0]["classic_member_metadata"] is None


def test_the_records_of_transactions_are_readable(cluster: Cluster, raw: RawClient) -> None:
    if cluster.data_folder is None:
        pytest.skip("the data folder of a remote cluster is not here")
    topic, name = create_topic(raw), unique("txn")
    producer = Connection(cluster.bootstrap_servers).producer({"transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, b"x")
    producer.flush()
    producer.commit_transaction()
    mine = [
        record["value"]
        for record in decoded(cluster, "__transaction_state", "transactions")
        if record["key"] == {"transactional_id": name}
    ]
    assert [value["state"] for value in mine][:3] == ["EMPTY", "ONGOING", "PREPARE_COMMIT"]
    assert mine[1]["partitions"] == [f"{topic.name}-0"]

"""What one client writes, every other one reads: keys, values, headers, timestamps, in every codec."""

import pytest

from support.batches import now_ms, read_batches
from support.clients import Client, Message
from support.cluster import Cluster, Topic, create_topic, fetch

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_WRITER = 20


@pytest.fixture(scope="module")
def written(cluster: Cluster, clients: dict[str, Client]) -> dict[str, tuple[Topic, dict[str, list[Message]]]]:
    """For each codec a topic into which every client has written its records, one client after the other."""
    found = {}
    for codec in CODECS:
        with cluster.connect() as raw:
            topic = create_topic(raw)
        start = now_ms()
        expected = {}
        for name, client in clients.items():
            expected[name] = [
                Message(f"key-{number}", f"{name} wrote {'x' * 200} {number}", ("written-by", name), start + number)
                for number in range(PER_WRITER)
            ]
            client.write(cluster.bootstrap_servers, topic.name, expected[name], codec)
        found[codec] = (topic, expected)
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_every_client_reads_what_the_others_wrote(
    cluster: Cluster,
    clients: dict[str, Client],
    written: dict[str, tuple[Topic, dict[str, list[Message]]]],
    codec: str,
    reader: str,
) -> None:
    topic, expected = written[codec]
    count = sum(len(messages) for messages in expected.values())
    messages = clients[reader].read(cluster.bootstrap_servers, topic.name, count)
    assert [message.offset for message in messages] == list(range(count))
    for writer, wanted in expected.items():
        got = [message for message in messages if message.header == ("written-by", writer)]
        assert [(m.key, m.value) for m in got] == [(m.key, m.value) for m in wanted]
        if clients[writer].writes_timestamps:
            assert [m.timestamp for m in got] == [m.timestamp for m in wanted]


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_stored_in_the_producers_codec(
    cluster: Cluster, written: dict[str, tuple[Topic, dict[str, list[Message]]]], codec: str
) -> None:
    topic, _ = written[codec]
    with cluster.connect() as raw:
        stored = read_batches(fetch(raw, topic).records)
    assert {batch.codec for batch in stored} == {codec}


@pytest.mark.parametrize("name", CLIENTS)
def test_null_keys_empty_values_and_no_headers(cluster: Cluster, clients: dict[str, Client], name: str) -> None:
    with cluster.connect() as raw:
        topic = create_topic(raw)
    start = now_ms()
    client = clients[name]
    wanted = [Message("", "empty key", None, start), Message("k", "", None, start)]
    if name == "kcat":  # it writes an empty key and an empty value as null
        wanted = [Message("k", "v", None, start)]
    client.write(cluster.bootstrap_servers, topic.name, wanted, "none")
    got = client.read(cluster.bootstrap_servers, topic.name, len(wanted))
    assert [(m.key, m.value, m.header) for m in got] == [(m.key, m.value, m.header) for m in wanted]


@pytest.mark.parametrize("name", CLIENTS)
def test_log_append_time_is_what_readers_see(cluster: Cluster, clients: dict[str, Client], name: str) -> None:
    with cluster.connect() as raw:
        topic = create_topic(raw, message_timestamp_type="LogAppendTime")
    before = now_ms()
    clients["confluent-kafka"].write(cluster.bootstrap_servers, topic.name, [Message("k", "v", None, 1000)], "none")
    (got,) = clients[name].read(cluster.bootstrap_servers, topic.name, 1)
    assert before - 1 <= got.timestamp <= now_ms() + 1

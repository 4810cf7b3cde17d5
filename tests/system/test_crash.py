"""kill -9 under load: whatever was acknowledged is there once and in order, and everything carries on."""

import random
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.millstream_server import MillstreamServer

ROUNDS = 4
PARTITIONS = 3


class Acknowledged:
    """The records whose delivery was reported, by partition."""

    def __init__(self) -> None:
        self.offsets: dict[int, dict[int, bytes]] = {index: {} for index in range(PARTITIONS)}
        self.count = 0
        self.lock = threading.Lock()
        self.enough = threading.Event()

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            with self.lock:
                self.offsets[partition][offset] = value
                self.count += 1
            self.enough.set()


def create_topic(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(20)


def read_all(address: str, topic: str, *, isolation: str = "read_uncommitted") -> dict[int, list[tuple[int, bytes]]]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    out: dict[int, list[tuple[int, bytes]]] = {index: [] for index in range(PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "the consumer got nothing within 30 s"
        partition = message.partition()
        assert partition is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            ended.add(partition)
            continue
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        out[partition].append((offset, value))
    consumer.close()
    return out


@pytest.mark.timeout(240)
def test_every_acknowledged_record_survives_kill_9_once_and_in_order(tmp_path: Path) -> None:
    topic = "survives"
    settings = {"log.segment.bytes": "1048576", "num.partitions": str(PARTITIONS)}
    port = free_port()
    rng = random.Random(11)
    with MillstreamServer(settings, folder=tmp_path, port=port) as server:
        create_topic(server.bootstrap_servers, topic)
        acknowledged = Acknowledged()
        producer = Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 2,
                "compression.type": "lz4",
                "message.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 200,
            }
        )
        stop = threading.Event()
        sent = 0

        def load() -> None:
            nonlocal sent
            while not stop.is_set():
                try:
                    producer.produce(
                        topic, f"{sent}".encode() * 20, partition=sent % PARTITIONS, on_delivery=acknowledged
                    )
                    sent += 1
                except BufferError:
                    pass
                producer.poll(0.001 if sent % 200 == 0 else 0)

        thread = threading.Thread(target=load)
        thread.start()
        try:
            for _ in range(ROUNDS):
                goal = acknowledged.count + rng.randrange(5_000, 20_000)
                while acknowledged.count < goal:
                    acknowledged.enough.clear()
                    assert acknowledged.enough.wait(60), "nothing was acknowledged within 60 s"
                server.restart(kill=True)
        finally:
            stop.set()
            thread.join()
        assert producer.flush(60) == 0
        found = read_all(server.bootstrap_servers, topic)
    assert acknowledged.count == sent
    for index in range(PARTITIONS):
        assert [offset for offset, _ in found[index]] == list(range(len(found[index])))
        values = [value for _, value in found[index]]
        assert values == [f"{number}".encode() * 20 for number in range(index, sent, PARTITIONS)]
        for offset, value in acknowledged.offsets[index].items():
            assert values[offset] == value


@pytest.mark.timeout(120)
def test_an_open_transaction_and_a_group_carry_on_after_kill_9(tmp_path: Path) -> None:
    topic = "carries-on"
    port = free_port()
    with MillstreamServer({"num.partitions": str(PARTITIONS)}, folder=tmp_path, port=port) as server:
        address = server.bootstrap_servers
        create_topic(address, topic)
        producer = Producer(
            {"bootstrap.servers": address, "transactional.id": "carrier", "reconnect.backoff.max.ms": 200}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, b"committed", partition=0)
        producer.commit_transaction(30)
        producer.begin_transaction()
        producer.produce(topic, b"before the crash", partition=0)
        producer.flush(30)
        consumer = Consumer({"bootstrap.servers": address, "group.id": "carried", "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()

        server.restart(kill=True)

        open_read = read_all(address, topic, isolation="read_committed")
        assert [value for _, value in open_read[0]] == [b"committed"]
        producer.produce(topic, b"after the crash", partition=0)
        producer.commit_transaction(30)
        whole = read_all(address, topic, isolation="read_committed")
        assert [value for _, value in whole[0]] == [b"committed", b"before the crash", b"after the crash"]
        again = Consumer({"bootstrap.servers": address, "group.id": "carried"})
        assert again.committed([TopicPartition(topic, 0)], timeout=30)[0].offset == 1
        again.close()


@pytest.mark.timeout(120)
def test_a_transaction_whose_producer_died_is_aborted_and_its_zombie_fenced(tmp_path: Path) -> None:
    topic = "fenced"
    with MillstreamServer({"num.partitions": str(PARTITIONS)}, folder=tmp_path, port=free_port()) as server:
        address = server.bootstrap_servers
        create_topic(address, topic)
        zombie = Producer({"bootstrap.servers": address, "transactional.id": "one-of-two"})
        zombie.init_transactions(30)
        zombie.begin_transaction()
        zombie.produce(topic, b"lost", partition=1)
        zombie.flush(30)
        server.restart(kill=True)
        successor = Producer({"bootstrap.servers": address, "transactional.id": "one-of-two"})
        successor.init_transactions(30)
        successor.begin_transaction()
        successor.produce(topic, b"kept", partition=1)
        successor.commit_transaction(30)
        with pytest.raises(KafkaException) as fenced:
            zombie.commit_transaction(30)
        assert fenced.value.args[0].fatal()
        found = read_all(address, topic, isolation="read_committed")
        assert [value for _, value in found[1]] == [b"kept"]


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

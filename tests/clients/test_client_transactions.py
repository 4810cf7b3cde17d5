"""Transactions with the real clients: confluent-kafka, Java and aiokafka write, everybody reads committed records."""

import asyncio
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer

from support.clients import Client
from support.cluster import Cluster, Topic, create_topic, find_coordinator, produce, unique
from support.java import KafkaWorker
from support.raw import RawClient

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat", "java")
STEPS = (("a1", "a2"), True), (("b1",), False), (("c1",), True), (("d1", "d2"), False)  # values, commit
COMMITTED = ["a1", "a2", "c1"]
Writer = Callable[[str, str, str], None]


def write_with_confluent(address: str, topic: str, transactional_id: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "transactional.id": transactional_id})
    producer.init_transactions(20)
    for values, commit in STEPS:
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, "k", partition=0)
        producer.flush(20)
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)


def write_with_aiokafka(address: str, topic: str, transactional_id: str) -> None:
    async def write() -> None:
        producer: Any = AIOKafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
        await producer.start()
        try:
            for values, commit in STEPS:
                await producer.begin_transaction()
                for value in values:
                    await producer.send_and_wait(topic, value.encode(), b"k", partition=0)
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(write())


@pytest.mark.parametrize("writer", ["confluent-kafka", "aiokafka", "java"])
def test_readers_of_committed_records_see_only_those(
    cluster: Cluster, raw: RawClient, clients: dict[str, Client], java: KafkaWorker, writer: str
) -> None:
    def write_with_java(address: str, topic: str, transactional_id: str) -> None:
        steps = [{"values": list(values), "abort": not commit} for values, commit in STEPS]
        config = {"transactional.id": transactional_id}
        java.client("transactions", bootstrap=address, topic=topic, transactions=steps, config=config)

    writers: dict[str, Writer] = {
        "confluent-kafka": write_with_confluent,
        "aiokafka": write_with_aiokafka,
        "java": write_with_java,
    }
    topic, name = create_topic(raw), unique("txn")
    find_coordinator(raw, 1, name)
    writers[writer](cluster.bootstrap_servers, topic.name, name)
    produce(raw, topic, b"end")
    for reader in CLIENTS:
        if reader == "kcat":
            continue  # it counts and stops before the transaction's end; the next test has it
        got = clients[reader].read(cluster.bootstrap_servers, topic.name, len(COMMITTED) + 1, committed=True)
        assert [message.value for message in got] == [*COMMITTED, "end"], reader
        everything = clients[reader].read(cluster.bootstrap_servers, topic.name, 7)
        assert len(everything) == 7, reader


def test_kcat_reads_committed_records_up_to_the_last_stable_offset(
    cluster: Cluster, raw: RawClient, clients: dict[str, Client]
) -> None:
    topic, name = create_topic(raw), unique("txn")
    find_coordinator(raw, 1, name)
    write_with_confluent(cluster.bootstrap_servers, topic.name, name)
    got = clients["kcat"].read(cluster.bootstrap_servers, topic.name, len(COMMITTED), committed=True)
    assert [message.value for message in got] == COMMITTED


def test_a_zombie_is_fenced(cluster: Cluster, raw: RawClient) -> None:
    topic, name = create_topic(raw), unique("txn")
    find_coordinator(raw, 1, name)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name}
    zombie, successor = (confluent_kafka.Producer(settings) for _ in range(2))
    zombie.init_transactions(20)
    zombie.begin_transaction()
    zombie.produce(topic.name, "from the grave", partition=0)
    zombie.flush(20)
    successor.init_transactions(20)
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        zombie.commit_transaction(20)
    assert failure.value.args[0].fatal()
    successor.begin_transaction()
    successor.produce(topic.name, "alive", partition=0)
    successor.commit_transaction(20)


class TestConsumeTransformProduce:
    @pytest.fixture
    def source(self, raw: RawClient) -> Topic:
        topic = create_topic(raw)
        produce(raw, topic, *[f"word-{number}".encode() for number in range(20)])
        return topic

    def committed(self, raw: RawClient, group: str, topic: Topic) -> int:
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        request = [{"group_id": group, "topics": wanted}]
        (answer,) = raw.call("offset_fetch", 9, groups=request, require_stable=True).groups
        offset: int = answer.topics[0].partitions[0].committed_offset
        return offset

    def test_java(
        self, cluster: Cluster, raw: RawClient, java: KafkaWorker, clients: dict[str, Client], source: Topic
    ) -> None:
        target, group = create_topic(raw), unique("group")
        copied = java.client(
            "copy", bootstrap=cluster.bootstrap_servers, topic=source.name, target=target.name, count=20, group=group,
            config={"transactional.id": unique("txn")},
        )  # fmt: skip
        assert copied == 20
        got = clients["java"].read(cluster.bootstrap_servers, target.name, 20, committed=True)
        assert [message.value for message in got] == [f"WORD-{number}" for number in range(20)]
        assert self.committed(raw, group, source) == 20

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_confluent(
        self, cluster: Cluster, raw: RawClient, clients: dict[str, Client], source: Topic, protocol: str
    ) -> None:
        target, group = create_topic(raw), unique("group")
        address = cluster.bootstrap_servers
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "transactional.id": unique("txn")})
        producer.init_transactions(20)
        consumer.subscribe([source.name])
        copied = 0
        while copied < 20:
            messages: Any = consumer.consume(20, 20)
            assert messages
            producer.begin_transaction()
            for message in messages:
                producer.produce(target.name, message.value().upper(), partition=0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 20
            )
            producer.commit_transaction(20)
            copied += len(messages)
        consumer.close()
        got = clients["confluent-kafka"].read(address, target.name, 20, committed=True)
        assert [message.value for message in got] == [f"WORD-{number}" for number in range(20)]
        assert self.committed(raw, group, source) == 20

"""Groups with the real clients: joining, sharing, leaving, committing; both group protocols; mixed groups."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer

from support.clients import kcat, python_group_consumer
from support.cluster import Cluster, Topic, create_topic, eventually, find_coordinator, produce, unique
from support.java import KafkaWorker
from support.raw import RawClient

PARTITIONS = 4
GROUP_RESOURCE = 32


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    """Four partitions with ten records each."""
    topic = create_topic(raw, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        produce(raw, topic, *[f"{partition}-{number}".encode() for number in range(10)], partition=partition)
    return topic


@pytest.fixture
def group(raw: RawClient) -> str:
    """A group whose members of the consumer protocol are told to heartbeat often."""
    name = unique("group")
    find_coordinator(raw, 0, name)
    changes = [{"name": "consumer.heartbeat.interval.ms", "config_operation": 0, "value": "200"}]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": changes}
    raw.call("incremental_alter_configs", 1, resources=[resource])
    return name


def committed(raw: RawClient, group: str, topic: Topic) -> list[int]:
    wanted = [{"name": topic.name, "partition_indexes": list(range(PARTITIONS))}]
    (answer,) = raw.call("offset_fetch", 9, groups=[{"group_id": group, "topics": wanted}]).groups
    return [part.committed_offset for part in sorted(answer.topics[0].partitions, key=lambda p: p.partition_index)]


class TestConfluent:
    def consumer(self, cluster: Cluster, group: str, topic: Topic, **options: Any) -> confluent_kafka.Consumer:
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        if settings.get("group.protocol") != "consumer":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe([topic.name])
        return consumer

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({"partition_assignment_strategy": "range"}, id="range"),
            pytest.param({"partition_assignment_strategy": "roundrobin"}, id="roundrobin"),
            pytest.param({"partition_assignment_strategy": "cooperative-sticky"}, id="cooperative-sticky"),
            pytest.param({"group_protocol": "consumer"}, id="consumer protocol"),
            pytest.param({"group_protocol": "consumer", "group_remote_assignor": "range"}, id="consumer, range"),
        ],
    )
    def test_two_consumers_share_and_one_takes_over(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic, options: dict[str, Any]
    ) -> None:
        first = self.consumer(cluster, group, topic, **options)
        second = None
        seen: set[tuple[int, int]] = set()

        def step(*consumers: confluent_kafka.Consumer) -> None:
            for consumer in consumers:
                message: Any = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    seen.add((message.partition(), message.offset()))

        def until(check: Callable[[], bool], *consumers: confluent_kafka.Consumer) -> None:
            deadline = time.monotonic() + 30
            while not check():
                assert time.monotonic() < deadline
                step(*consumers)

        try:
            until(lambda: len(first.assignment()) == PARTITIONS, first)
            second = self.consumer(cluster, group, topic, **options)
            pair = (first, second)
            until(lambda: sorted(len(c.assignment()) for c in pair) == [2, 2], *pair)
            owned = [part.partition for consumer in pair for part in consumer.assignment()]
            assert sorted(owned) == list(range(PARTITIONS))
            second.close()
            second = None
            until(lambda: len(first.assignment()) == PARTITIONS, first)
            until(lambda: len(seen) == PARTITIONS * 10, first)
            offsets = [confluent_kafka.TopicPartition(topic.name, n, 10) for n in range(PARTITIONS)]
            first.commit(offsets=offsets, asynchronous=False)
        finally:
            if second is not None:
                second.close()
            first.close()
        assert committed(raw, group, topic) == [10] * PARTITIONS


class TestKafkaPython:
    def test_two_consumers_share_and_one_takes_over(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic
    ) -> None:
        first = python_group_consumer(cluster.bootstrap_servers, group, topic.name)
        second: Any = None
        try:
            eventually(lambda: first.poll(timeout_ms=50) is not None and len(first.assignment()) == PARTITIONS, 30)
            second = python_group_consumer(cluster.bootstrap_servers, group, topic.name)

            def shared() -> bool:
                for consumer in (first, second):
                    consumer.poll(timeout_ms=50)
                return len(first.assignment()) == len(second.assignment()) == 2

            eventually(shared, 30)
            second.close()
            second = None
            eventually(lambda: first.poll(timeout_ms=50) is not None and len(first.assignment()) == PARTITIONS, 30)
            first.seek_to_end()
            for partition in first.assignment():
                assert first.position(partition) == 10
            first.commit()
        finally:
            if second is not None:
                second.close()
            first.close()
        assert committed(raw, group, topic) == [10] * PARTITIONS


class TestAioKafka:
    def test_two_consumers_share_and_one_takes_over(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic
    ) -> None:
        asyncio.run(self.scenario(cluster, group, topic))
        assert committed(raw, group, topic) == [10] * PARTITIONS

    def consumer(self, cluster: Cluster, group: str, topic: Topic) -> Any:
        return AIOKafkaConsumer(
            topic.name, bootstrap_servers=cluster.bootstrap_servers, group_id=group, auto_offset_reset="earliest",
            session_timeout_ms=6000, heartbeat_interval_ms=200, enable_auto_commit=False,
        )  # fmt: skip

    async def scenario(self, cluster: Cluster, group: str, topic: Topic) -> None:
        first, second = (self.consumer(cluster, group, topic) for _ in range(2))
        seen = 0

        async def until(check: Callable[[], bool]) -> None:
            nonlocal seen
            async with asyncio.timeout(30):
                while not check():
                    seen += sum(len(records) for records in (await first.getmany(timeout_ms=50)).values())

        await first.start()
        try:
            await until(lambda: len(first.assignment()) == PARTITIONS)
            await second.start()
            try:
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
            finally:
                await second.stop()
            await until(lambda: len(first.assignment()) == PARTITIONS)
            await until(lambda: seen >= PARTITIONS * 10)
            await first.commit()
        finally:
            await first.stop()


class TestKcat:
    def test_a_balanced_consumer_reads_everything_and_commits(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic
    ) -> None:
        output = kcat(
            "-b", cluster.bootstrap_servers, "-G", group, "-X", "auto.offset.reset=earliest", "-c", "40", "-q",
            "-f", "%p %o %s\n", topic.name,
        )  # fmt: skip
        lines = {tuple(line.split()) for line in output.splitlines()}
        assert lines == {(str(p), str(o), f"{p}-{o}") for p in range(PARTITIONS) for o in range(10)}
        assert committed(raw, group, topic) == [10] * PARTITIONS

    def test_metadata_and_offsets_by_query(self, cluster: Cluster, topic: Topic) -> None:
        listing = kcat("-b", cluster.bootstrap_servers, "-L", "-t", topic.name)
        assert f'topic "{topic.name}" with {PARTITIONS} partitions' in listing
        assert "10" in kcat("-b", cluster.bootstrap_servers, "-Q", "-t", f"{topic.name}:0:-1")


class TestJava:
    @pytest.mark.parametrize(
        "config",
        [
            pytest.param({}, id="range and cooperative-sticky"),
            pytest.param(
                {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor"}, id="sticky"
            ),
            pytest.param(
                {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
                id="cooperative-sticky",
            ),
            pytest.param({"group.protocol": "consumer"}, id="consumer protocol"),
        ],
    )
    def test_two_consumers_share_and_one_takes_over(
        self, cluster: Cluster, java: KafkaWorker, group: str, topic: Topic, config: dict[str, str]
    ) -> None:
        settings = {"group.id": group, **config}
        if config.get("group.protocol") != "consumer":
            settings |= {"heartbeat.interval.ms": "200", "session.timeout.ms": "6000"}
        address = cluster.bootstrap_servers
        result = java.client("rebalance", bootstrap=address, topic=topic.name, partitions=PARTITIONS, config=settings)
        everything = list(range(PARTITIONS))
        assert (result["alone"], result["again"]) == (everything, everything)
        assert (len(result["first"]), len(result["second"])) == (2, 2)
        assert sorted(result["first"] + result["second"]) == everything

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_group_goes_on_where_it_stopped(
        self, cluster: Cluster, java: KafkaWorker, raw: RawClient, group: str, topic: Topic, protocol: str
    ) -> None:
        config = {"group.id": group, "group.protocol": protocol}
        request: dict[str, Any] = {"bootstrap": cluster.bootstrap_servers, "topic": topic.name, "config": config}
        first = java.client("consume", count=40, **request)
        assert len(first) == 40
        assert committed(raw, group, topic) == [10] * PARTITIONS
        produce(raw, topic, b"news", partition=2)
        second = java.client("consume", count=1, **request)
        assert [(record["partition"], record["value"]) for record in second] == [(2, "news")]


def test_clients_of_different_make_share_one_classic_group(
    cluster: Cluster, raw: RawClient, group: str, topic: Topic
) -> None:
    """librdkafka and kafka-python agree on the range assignor's metadata and assignment."""
    confluent = TestConfluent().consumer(cluster, group, topic, partition_assignment_strategy="range")
    python = python_group_consumer(cluster.bootstrap_servers, group, topic.name)
    try:

        def shared() -> bool:
            confluent.poll(0.05)
            python.poll(timeout_ms=50)
            return len(confluent.assignment()) == len(python.assignment()) == 2

        eventually(shared, 30)
        owned = [part.partition for part in (*confluent.assignment(), *python.assignment())]
        assert sorted(owned) == list(range(PARTITIONS))
    finally:
        python.close()
        confluent.close()

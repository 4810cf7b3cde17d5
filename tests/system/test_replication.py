"""The walk of docs/replication.md on Apache Kafka: a leader is killed under load, two brokers are stopped, one leaves.

Three brokers and a controller that is none of them (so that stopping two brokers does not take the metadata quorum with
it), one topic with three replicas and min.insync.replicas=2. What happens is seen through the commands. At the end
every record that was acknowledged is there, once.
"""

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from millstream.engines.kafka import KafkaEngine
from support.cli import succeed
from support.cluster import eventually
from support.three_brokers import three_brokers as running_three_brokers

TOPIC = "orders"
PARTITIONS = 3

# kafka-python leaves the socket of a connection that was refused, by a broker that is down, to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")


class Load:
    """An idempotent producer with acks=all that writes numbers until it is told to stop, and knows the acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 2, "log_level": 0}
        )
        self._stopping = threading.Event()
        self.acknowledged: set[int] = set()
        self.failed: list[KafkaError] = []
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def wait_for_more(self, count: int) -> None:
        """Until that many more are acknowledged."""
        target = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= target, timeout=30)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            self._producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS, on_delivery=self._done)
            self._producer.poll(0)
            number += 1
            if number % 10 == 0:
                time.sleep(0.005)  # about 2000 records a second: a steady load, not a race
        assert self._producer.flush(60) == 0

    def _done(self, error: KafkaError | None, message: "Message[Any, Any]") -> None:
        if error is None:
            value = message.value()
            assert value is not None
            self.acknowledged.add(int(value))
        else:
            self.failed.append(error)


class Walk:
    """The cluster, and what its commands show of it."""

    def __init__(self, engine: KafkaEngine) -> None:
        self.engine = engine
        self.bootstrap = engine.bootstrap

    def command(self, *arguments: str) -> Any:
        return succeed(*arguments, "--bootstrap", self.bootstrap, "--json").json

    def status(self) -> Any:
        return self.command("status")

    def partitions(self) -> dict[int, Any]:
        """Leader, replicas and in-sync replicas of the topic's partitions, by `topic describe`."""
        found = self.command("topic", "describe", TOPIC)
        (topic,) = found if isinstance(found, list) else [found]
        return {part["partition"]: part for part in topic["partitions"]}

    def brokers_up(self) -> list[int]:
        return [broker["id"] for broker in self.status()["brokers"] if broker["up"]]

    def wait_until_whole(self, brokers: list[int]) -> None:
        def whole() -> bool:
            status = self.status()
            up = [broker["id"] for broker in status["brokers"] if broker["up"]]
            return up == brokers and not status["under_replicated"] and not status["offline"]

        eventually(whole, timeout=40, pause=0.2)


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    with running_three_brokers() as engine:
        yield Walk(engine)
        gc.collect()


def read_all(bootstrap: str) -> list[int]:
    """Every record of the topic, up to the ends that it has now."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0, "enable.auto.commit": False}
    )
    ends = {n: consumer.get_watermark_offsets(TopicPartition(TOPIC, n), timeout=20)[1] for n in range(PARTITIONS)}
    consumer.assign([TopicPartition(TOPIC, n, 0) for n in range(PARTITIONS)])
    values = []
    deadline = time.monotonic() + 30
    positions = dict.fromkeys(ends, 0)
    while positions != ends and time.monotonic() < deadline:
        for message in consumer.consume(1000, 1):
            assert message.error() is None
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            values.append(int(value))
            positions[partition] = offset + 1
    consumer.close()
    assert positions == ends
    return values


def try_to_produce(bootstrap: str) -> KafkaError | None:
    """One record with acks=all and no retries: the broker's own answer."""
    answers: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "log_level": 0})
    producer.produce(TOPIC, b"-1", partition=0, on_delivery=lambda error, message: answers.append(error))
    assert producer.flush(20) == 0
    return answers[0]


@pytest.mark.timeout(180)
def test_the_walk(walk: Walk) -> None:
    engine = walk.engine
    options = ["--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2"]
    walk.command("topic", "create", TOPIC, *options)
    walk.wait_until_whole([1, 2, 3])
    assert walk.status()["controller"] == 100
    load = Load(walk.bootstrap)
    try:
        load.wait_for_more(500)

        # The leader of partition 0 is killed: another one leads, the in-sync replicas shrink, and the load goes on.
        leader = walk.partitions()[0]["leader"]
        engine.kill_broker(leader)
        left = [broker for broker in (1, 2, 3) if broker != leader]
        eventually(lambda: walk.brokers_up() == left, timeout=30, pause=0.2)
        eventually(lambda: all(part["leader"] in left for part in walk.partitions().values()), timeout=30, pause=0.2)
        status = walk.status()
        assert status["offline"] == []
        shrunk = [part for part in status["under_replicated"] if part["topic"] == TOPIC]
        assert [sorted(part["isr"]) for part in shrunk] == [left] * PARTITIONS
        load.wait_for_more(500)

        # It comes back: the in-sync replicas grow again.
        engine.start_broker(leader)
        walk.wait_until_whole([1, 2, 3])
        assert all(sorted(part["isr"]) == [1, 2, 3] for part in walk.partitions().values())
        load.wait_for_more(500)
    finally:
        load.stop()
    assert load.failed == []
    values = read_all(walk.bootstrap)
    assert load.acknowledged == set(values)
    assert len(values) == len(set(values)), "nothing is there twice"

    # Two brokers stop: one replica is not enough for acks=all, and producers are told.
    for broker in (1, 2):
        engine.stop_broker(broker)
    eventually(lambda: walk.brokers_up() == [3], timeout=30, pause=0.2)
    alone = [part for part in walk.status()["under_replicated"] if part["topic"] == TOPIC]
    assert [(part["leader"], part["isr"]) for part in alone] == [(3, [3])] * PARTITIONS
    answer = try_to_produce(walk.bootstrap)
    assert answer is not None
    assert answer.code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert walk.status()["controller"] == 100
    for broker in (1, 2):
        engine.start_broker(broker)
    walk.wait_until_whole([1, 2, 3])
    assert try_to_produce(walk.bootstrap) is None

    # One more broker comes, and broker 3 leaves: its partitions are moved first.
    engine.start_broker(4)
    walk.wait_until_whole([1, 2, 3, 4])
    walk.command("cluster", "decommission", "3")
    assert any(3 in part["replicas"] for part in walk.partitions().values()), "a plan alone moves nothing"
    walk.command("cluster", "decommission", "3", "--execute")
    assert all(sorted(part["replicas"]) == [1, 2, 4] for part in walk.partitions().values())
    (leaving,) = [broker for broker in walk.status()["brokers"] if broker["id"] == 3]
    assert (leaving["leaders"], leaving["replicas"]) == (0, 0)
    engine.stop_broker(3)
    eventually(lambda: walk.brokers_up() == [1, 2, 4], timeout=30, pause=0.2)
    assert walk.status()["under_replicated"] == []
    assert load.acknowledged <= set(read_all(engine.bootstrap))

"""A source cluster filled with everything that makes a move hard, and how to read back what a cluster holds."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import TopicPartition as AdminPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from example_kit.background import in_background
from support.raw import RawClient

MOMENT = int(time.time() * 1000) - 3_600_000
"""An hour ago: old enough to be told from now, too young for retention."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Record(NamedTuple):
    """All of a record that a move must keep."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def make_topic(address: str, name: str, partitions: int = 1, **configs: str) -> None:
    with_dots = {key.replace("_", "."): value for key, value in configs.items()}
    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        admin.create_topics({name: {"num_partitions": partitions, "configs": with_dots}}, wait_for_metadata=True)
    finally:
        admin.close()


def fill(address: str, topic: str, count: int, *, codec: str = "none", partitions: int = 1, size: int = 100) -> None:
    """Records of every shape: null and empty keys and values, headers, repeated headers, timestamps of long ago."""
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 5})
    for index in range(count):
        while True:
            try:
                producer.produce(
                    topic,
                    key=(None, b"", b"key-%d" % index)[index % 3],
                    value=None if index % 7 == 0 else (b"%d " % index) * (size // 8),
                    headers=[("n", b"%d" % index), ("n", None), ("empty", b"")] if index % 2 else None,
                    timestamp=MOMENT + index * 10,
                    partition=index % partitions,
                )
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def transact(address: str, topic: str, name: str, values: list[bytes], *, commit: bool, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, timestamp=MOMENT, partition=partition)
    producer.flush()
    if commit:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)


def delete_before(address: str, topic: str, offset: int, partition: int = 0) -> None:
    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        admin.delete_records({AdminPartition(topic, partition): offset})
    finally:
        admin.close()


def commit(address: str, group: str, positions: dict[tuple[str, int], int], metadata: str = "") -> None:
    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        admin.alter_group_offsets(
            group,
            {AdminPartition(*where): OffsetAndMetadata(offset, metadata, -1) for where, offset in positions.items()},
        )
    finally:
        admin.close()


def positions(address: str, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        found: dict[Any, Any] = admin.list_group_offsets([group])[group]
        return {(where.topic, where.partition): (entry.offset, entry.metadata) for where, entry in found.items()}
    finally:
        admin.close()


def topic_configs(address: str, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    from kafka.admin import ConfigResource, ConfigResourceType

    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return {
            name: entry["value"]
            for name, entry in found["topic"][topic].items()
            if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"
        }
    finally:
        admin.close()


def bounds(address: str, topic: str, partition: int = 0) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bounds"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        return low, high
    finally:
        consumer.close()


def read(address: str, topic: str, partition: int = 0, *, isolation: str = "read_committed") -> list[Record]:
    """Every record that a consumer gets from one partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    found: list[Record] = []
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, low)])
        while True:
            message = consumer.poll(10.0)
            assert message is not None, f"nothing came from {topic}-{partition}"
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return found
            headers: Any = tuple(message.headers() or ())
            found.append(Record(message.offset() or 0, message.timestamp()[1], message.key(), message.value(), headers))
    finally:
        consumer.close()


def wait_for_records(address: str, topic: str, count: int) -> None:
    """Until the topic's first partition is there and holds so many records."""
    deadline = time.monotonic() + 60
    consumer = Consumer({"bootstrap.servers": address, "group.id": "waiting"})
    try:
        while time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):  # not there yet
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
                if high - low >= count:
                    return
            time.sleep(0.002)
    finally:
        consumer.close()
    raise AssertionError(f"{topic} did not get {count} records")


def codec_of(address: str, topic: str) -> str:
    """How the first batch of partition 0 is compressed."""
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    with RawClient(address) as client:
        answer = client.call(
            "fetch", 12, max_wait=0, min_bytes=0, max_bytes=1 << 24, topics=[{"topic": topic, "partitions": [part]}]
        )
    attributes = int.from_bytes(bytes(answer.responses[0].partitions[0].records)[21:23], "big")
    return CODECS[attributes & 7]


@contextlib.contextmanager
def open_transaction(address: str, topic: str, name: str, values: list[bytes]) -> Iterator[None]:
    """A transaction with records that is committed at the end."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, partition=0)
    producer.flush()
    yield
    producer.commit_transaction(20)


def fill_compacted(address: str, topic: str, *, keys: int, rounds: int) -> None:
    """Keys written again and again, a minute apart, until the cleaner has left gaps between the records that remain."""
    producer = Producer({"bootstrap.servers": address})
    for index in range(rounds):
        for key in range(keys):
            if key % 4 == 0 or index in (0, rounds - 1):
                moment = MOMENT + index * 60_000 + key
                producer.produce(topic, key=b"%d" % key, value=b"%d" % index, timestamp=moment, partition=0)
        producer.flush()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        offsets = [record.offset for record in read(address, topic)]
        if any(after - before > 1 for before, after in itertools.pairwise(offsets)):
            return
        time.sleep(0.1)
    raise AssertionError("the cleaner left no gaps")


def fill_big(address: str, topic: str, sizes: list[int]) -> None:
    producer = Producer({"bootstrap.servers": address, "message.max.bytes": max(sizes) + 10_000})
    for size in sizes:
        producer.produce(topic, value=os.urandom(size), timestamp=MOMENT, partition=0)
        producer.flush()


@contextlib.contextmanager
def member(address: str, group: str, topic: str) -> Iterator[None]:
    """A consumer at work in a group, which has read and committed all there is."""
    properties = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**properties, "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        left = bounds(address, topic)[1]
        while left:
            left -= len(consumer.consume(left, 1.0))
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


@contextlib.contextmanager
def producing(address: str, topic: str) -> Iterator[None]:
    """A producer that goes on in the background."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 1})

    def produce(stop: threading.Event) -> None:
        while not stop.wait(0.002):
            producer.produce(topic, value=b"live", timestamp=MOMENT, partition=0)
            producer.poll(0)
        producer.flush()

    with in_background(produce):
        yield


def topics(address: str) -> list[str]:
    admin = KafkaAdminClient(bootstrap_servers=[address])
    try:
        names: list[str] = admin.list_topics()
        return names
    finally:
        admin.close()

"""A source cluster filled with everything that makes a move hard, and how to read back what a cluster holds."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import TopicPartition as AdminPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

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
        }
    )
    found: list[Record] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is not None:
                    assert error.name() == "_PARTITION_EOF", error
                    return found
                headers: Any = tuple(message.headers() or ())
                found.append(
                    Record(message.offset() or 0, message.timestamp()[1], message.key(), message.value(), headers)
                )
    finally:
        consumer.close()

"""The real clients behind one small face: write records, read records. What a client is, is its adapter's business.

Every adapter writes to partition 0 with key, value, one header and (where its interface has a place for it) a
timestamp, and reads partition 0 from the beginning. kcat cannot give each record its own time, so its
`writes_timestamps` is False.
"""

import asyncio
import json
import shutil
import subprocess
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition

from support.java import KafkaWorker, missing

with warnings.catch_warnings():
    # kafka-python loads its schemas through a deprecated function of importlib.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka


@dataclass(frozen=True)
class Message:
    """A record as every client can show it."""

    key: str | None
    value: str | None
    header: tuple[str, str] | None
    timestamp: int
    offset: int = -1


class Client(Protocol):
    name: str
    writes_timestamps: bool

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None: ...

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]: ...


class Confluent:
    name = "confluent-kafka"
    writes_timestamps = True

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": True, "linger.ms": 20}
        )
        errors: list[Any] = []
        for message in messages:
            headers: Any = [message.header] if message.header else None
            producer.produce(
                topic, message.value, message.key, partition=0, timestamp=message.timestamp, headers=headers,
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )  # fmt: skip
        assert producer.flush(20) == 0
        assert errors == []

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]:
        options: dict[str, Any] = {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = confluent_kafka.Consumer({**options, "isolation.level": isolation})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        found: list[Message] = []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            message: Any = consumer.poll(0.2)
            if message is None:
                continue
            assert message.error() is None, message.error()
            header = message.headers()[0] if message.headers() else None
            found.append(
                Message(
                    _text(message.key()), _text(message.value()), (header[0], header[1].decode()) if header else None,
                    message.timestamp()[1], message.offset(),
                )
            )  # fmt: skip
        consumer.close()
        return found


class KafkaPython:
    name = "kafka-python"
    writes_timestamps = True

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        producer: Any = kafka.KafkaProducer(
            bootstrap_servers=address, compression_type=None if codec == "none" else codec, linger_ms=20
        )
        futures = [
            producer.send(
                topic, _bytes(message.value), _bytes(message.key), partition=0, timestamp_ms=message.timestamp,
                headers=[(message.header[0], message.header[1].encode())] if message.header else None,
            )
            for message in messages
        ]  # fmt: skip
        producer.flush(20)
        for future in futures:
            future.get(timeout=20)
        producer.close()

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]:
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer: Any = kafka.KafkaConsumer(bootstrap_servers=address, group_id=None, isolation_level=isolation)
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found: list[Message] = []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=200).values():
                found += [_from_python(record) for record in records]
        consumer.close()
        return found


class AioKafka:
    name = "aiokafka"
    writes_timestamps = True

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        asyncio.run(self._write(address, topic, messages, codec))

    async def _write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        producer: Any = AIOKafkaProducer(
            bootstrap_servers=address, compression_type=None if codec == "none" else codec, enable_idempotence=True
        )
        await producer.start()
        try:
            for message in messages:
                await producer.send(
                    topic, _bytes(message.value), _bytes(message.key), partition=0, timestamp_ms=message.timestamp,
                    headers=[(message.header[0], message.header[1].encode())] if message.header else None,
                )  # fmt: skip
            await producer.flush()
        finally:
            await producer.stop()

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]:
        return asyncio.run(self._read(address, topic, count, committed))

    async def _read(self, address: str, topic: str, count: int, committed: bool) -> list[Message]:
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer: Any = AIOKafkaConsumer(bootstrap_servers=address, isolation_level=isolation)
        await consumer.start()
        try:
            partition = AioTopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found: list[Message] = []
            deadline = time.monotonic() + 20
            while len(found) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += [_from_python(record) for record in records]
            return found
        finally:
            await consumer.stop()


class Kcat:
    name = "kcat"
    writes_timestamps = False

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        for header in dict.fromkeys(message.header for message in messages):
            lines = "".join(f"{m.key}\t{m.value}\n" for m in messages if m.header == header)
            option = ["-H", f"{header[0]}={header[1]}"] if header else []
            codec_option = [] if codec == "none" else ["-z", codec]
            kcat("-b", address, "-P", "-t", topic, "-p", "0", "-K", "\t", *codec_option, *option, stdin=lines)

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]:
        isolation = "read_committed" if committed else "read_uncommitted"
        output = kcat(
            "-b", address, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-e", "-q", "-J",
            "-X", f"isolation.level={isolation}",
        )  # fmt: skip
        found = []
        for line in output.splitlines():
            record = json.loads(line)
            names = record.get("headers") or []
            header = (names[0], names[1]) if names else None
            found.append(Message(record["key"], record["payload"], header, record["ts"], record["offset"]))
        return found


class Java:
    name = "java"
    writes_timestamps = True

    def __init__(self, worker: KafkaWorker) -> None:
        self._worker = worker

    def write(self, address: str, topic: str, messages: Sequence[Message], codec: str) -> None:
        records = [
            {
                "key": message.key,
                "value": message.value,
                "partition": 0,
                "timestamp": message.timestamp,
                "headers": [list(message.header)] if message.header else [],
            }
            for message in messages
        ]
        config = {"compression.type": codec, "linger.ms": "20"}
        self._worker.client("produce", bootstrap=address, topic=topic, records=records, config=config)

    def read(self, address: str, topic: str, count: int, *, committed: bool = False) -> list[Message]:
        config = {"isolation.level": "read_committed" if committed else "read_uncommitted"}
        answer = self._worker.client("consume", bootstrap=address, topic=topic, count=count, config=config)
        return [
            Message(
                record["key"], record["value"], tuple(record["headers"][0]) if record["headers"] else None,
                record["timestamp"], record["offset"],
            )
            for record in answer
        ]  # fmt: skip


def python_group_consumer(address: str, group: str, topic: str) -> Any:
    """kafka-python's consumer as a member of a group; it knows the topic's partitions before it may become leader."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=6000, heartbeat_interval_ms=200,
    )  # fmt: skip
    assert consumer.partitions_for_topic(topic)
    consumer.subscribe([topic])
    return consumer


def kcat(*arguments: str, stdin: str = "") -> str:
    """Runs kcat and returns its standard output."""
    program = shutil.which("kcat")
    if program is None:
        missing("no `kcat` on the PATH: run `make setup`")
        raise AssertionError("not reached")
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"kcat {arguments}: {done.stderr}"
    return done.stdout


def _text(data: bytes | str | None) -> str | None:
    return data.decode() if isinstance(data, bytes) else data


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _from_python(record: Any) -> Message:
    header = record.headers[0] if record.headers else None
    pair = (header[0], header[1].decode()) if header else None
    return Message(_text(record.key), _text(record.value), pair, record.timestamp, record.offset)

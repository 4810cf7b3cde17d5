"""A disk that takes no more: producers are told, nothing is damaged, and work goes on when there is room."""

import resource
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from support.millstream_server import MillstreamServer

ROOM_BYTES = 1 << 20


def produce(address: str, topic: str, values: list[bytes]) -> tuple[list[bytes], set[int]]:
    """What was acknowledged, and the error codes of the rest."""
    acknowledged: list[bytes] = []
    errors: set[int] = set()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message.value() or b"")
        else:
            errors.add(error.code())

    producer = Producer({"bootstrap.servers": address, "retries": 0, "linger.ms": 0, "batch.num.messages": 1})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        producer.flush(30)
    return acknowledged, errors


def read(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        values.append(message.value() or b"")
    consumer.close()
    return values


@pytest.mark.timeout(120)
@pytest.mark.parametrize("crash", [False, True], ids=["goes on", "goes on after kill -9"])
def test_no_room_for_more_is_a_storage_error_and_does_no_damage(tmp_path: Path, crash: bool) -> None:
    topic = "full"
    values = [bytes([number % 251]) * 50_000 for number in range(40)]
    with MillstreamServer(folder=tmp_path) as server:
        first, errors = produce(server.bootstrap_servers, topic, values[:5])
        assert (first, errors) == (values[:5], set())

        # No file of the server may grow beyond this: the kernel fails the write as it does on a full disk.
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))
        second, errors = produce(server.bootstrap_servers, topic, values[5:])
        assert errors == {KafkaError.KAFKA_STORAGE_ERROR}
        assert len(second) < len(values) - 5
        assert read(server.bootstrap_servers, topic, len(first + second)) == first + second
        elsewhere, errors = produce(server.bootstrap_servers, "other", values[:3])
        assert (elsewhere, errors) == (values[:3], set())

        if crash:
            server.restart(kill=True)
        else:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        third, errors = produce(server.bootstrap_servers, topic, values)
        assert (third, errors) == (values, set())
        everything = first + second + third
        assert read(server.bootstrap_servers, topic, len(everything)) == everything
        assert "Traceback" not in server.log_file.read_text()

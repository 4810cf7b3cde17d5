"""A topic read from one place to its end: how state is rebuilt, and how results are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from example_kit.clients import patient
from example_kit.errors import ExampleError

SECONDS = 30.0


def read_topic(
    bootstrap: str, topic: str, *, partitions: Iterable[int] | None = None, start: Mapping[int, int] | None = None
) -> Iterator[Message]:
    """Every committed record that is there now, in order within each partition.

    `partitions`: only these. `start`: partition -> offset of its first record to read; default: all there are.
    """
    settings: dict[str, str | bool | int] = {
        **patient(bootstrap),
        "group.id": "reads-without-a-group",  # the client wants one; nothing is ever committed
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 10,  # the end is told when a fetch brings nothing
        "reconnect.backoff.ms": 10,
    }
    with closing(Consumer(settings)) as consumer:
        there = partitions_of(consumer, topic)
        wanted = there if partitions is None else set(partitions)
        begin = start or {}
        consumer.assign([TopicPartition(topic, number, begin.get(number, OFFSET_BEGINNING)) for number in wanted])
        while wanted:
            record = consumer.poll(SECONDS)
            if record is None:
                raise ExampleError(f"{bootstrap} gave no record of {topic} for {SECONDS:.0f} s")
            error = record.error()
            if error is None:
                yield record
            elif error.code() == KafkaError._PARTITION_EOF:
                wanted.discard(record.partition() or 0)
            else:
                raise KafkaException(error)


def partitions_of(consumer: Consumer, topic: str) -> set[int]:
    """The numbers of the topic's partitions."""
    found = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if found.error is not None:
        raise ExampleError(f"topic {topic} cannot be read: {found.error.str()}")
    return set(found.partitions)


def text(value: str | bytes | None) -> str:
    """A key or value that is text; what is not there is empty."""
    return value.decode() if isinstance(value, bytes) else value or ""


def header(record: Message, name: str) -> str:
    """The last header of that name; empty if there is none."""
    return next((text(header[1]) for header in reversed(record.headers() or []) if header[0] == name), "")

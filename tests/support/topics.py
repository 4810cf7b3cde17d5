"""What tests of commands need of any cluster: the command bound to its address, topics with records, group members."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer

from support.cli import Result, refused, run, succeed
from support.cluster import unique


class Commands:
    """The `millstream` command against one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, **options: Any) -> Result:
        """A command that must succeed."""
        return succeed(*arguments, "--bootstrap", self.bootstrap, **options)

    def run(self, *arguments: str, **options: Any) -> Result:
        return run(*arguments, "--bootstrap", self.bootstrap, **options)

    def json(self, *arguments: str, **options: Any) -> Any:
        return self(*arguments, "--json", **options).json

    def refused(self, code: int, *arguments: str, **options: Any) -> str:
        """A command that must end with this code; what it said."""
        return refused(code, *arguments, "--bootstrap", self.bootstrap, **options)

    def topic(self, partitions: int = 1, *options: str) -> str:
        """A new topic."""
        name = unique("topic")
        self("topic", "create", name, "--partitions", str(partitions), *options)
        return name

    def lasting_topic(self, partitions: int = 1, *options: str) -> str:
        """A new topic that keeps records with timestamps of long ago."""
        return self.topic(partitions, "--config", "retention.ms=-1", *options)

    def fill(self, topic: str, *values: str | bytes | None, partition: int = 0, **more: Any) -> None:
        """Produces values to one partition, quickly."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
        assert producer.flush(30) == 0

    @contextlib.contextmanager
    def member(self, group: str, topic: str, **properties: Any) -> Iterator[Consumer]:
        """A consumer that is in the group, with its partitions, as long as the block runs."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "client.id": "a-member",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **properties,
            }
        )
        assigned, stop = threading.Event(), threading.Event()
        consumer.subscribe([topic], on_assign=lambda consumer, partitions: assigned.set())

        def poll() -> None:
            while not stop.is_set():
                consumer.poll(0.05)

        thread = threading.Thread(target=poll)
        thread.start()
        try:
            assert assigned.wait(30)
            yield consumer
        finally:
            stop.set()
            thread.join()
            consumer.close()

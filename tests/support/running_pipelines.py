"""Pipelines while they run in a test: a runner in a thread, on the session that all tests share; topics to feed it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines import Pipeline
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.spark.runner import Runner
from millstream.pipelines.status import PipelineStatus, Snapshot
from support.cluster import unique

PATIENCE = 60.0


class Running:
    """A runner in a thread; leaving the block stops it cleanly, or at once if the test has failed."""

    def __init__(
        self, pipelines: Pipeline | Sequence[Pipeline], bootstrap: str, spark: SparkSession, home: Path, **options: Any
    ) -> None:
        self._pipelines = [pipelines] if isinstance(pipelines, Pipeline) else list(pipelines)
        self.runner = Runner(self._pipelines, Connection(bootstrap), PipelineHome(home), session=spark, **options)
        self._changed = threading.Condition()
        self._snapshot: Snapshot = ()
        self._thread = threading.Thread(target=self._run)
        self.code: int | None = None
        self.failure: BaseException | None = None

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"the pipelines: {self._snapshot}")
        self.runner.stop(now=error is not None)
        self.join()

    def join(self, patience: float = PATIENCE) -> None:
        """Until the runner has ended."""
        self._thread.join(patience)
        assert not self._thread.is_alive(), "the runner does not stop"
        if self.failure is not None:
            raise self.failure

    def wait(self, condition: Callable[[PipelineStatus], object], name: str | None = None) -> PipelineStatus:
        """Until the (first, or named) pipeline's status is so."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while True:
                status = self.status(name)
                if status is not None and condition(status):
                    return status
                assert time.monotonic() < deadline, f"not within {PATIENCE} s: {status}"
                assert self._thread.is_alive(), f"the runner ended: {status} {self.failure}"
                assert status is None or status.state != "failed", status.error
                self._changed.wait(1)

    def wait_for_rows(self, count: int, query: str | None = None) -> PipelineStatus:
        """Until so many rows were read, by all queries or the one that is named."""

        def enough(status: PipelineStatus) -> bool:
            rows = [each.rows for each in status.queries if query in (None, each.name)]
            return bool(rows) and min(rows) >= count

        return self.wait(enough)

    def wait_for_failure(self) -> str:
        """Until it has failed; what it said."""
        self.join()
        status = self.status()
        assert status is not None
        assert status.state == "failed"
        return status.error or ""

    def status(self, name: str | None = None) -> PipelineStatus | None:
        """The first pipeline's, or the one that is named."""
        return next((status for status in self._snapshot if name in (None, status.name)), None)

    def _run(self) -> None:
        try:
            self.code = self.runner.run(self._on_change)
        except BaseException as error:
            self.failure = error
        finally:
            with self._changed:
                self._changed.notify_all()

    def _on_change(self, snapshot: Snapshot) -> None:
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify_all()


class Topics:
    """Topics of the cluster under test: made, filled, read."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def new(self, partitions: int = 1, **config: str) -> str:
        name = unique("topic")
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        given = {key.replace("_", "."): value for key, value in config.items()}
        for future in admin.create_topics([NewTopic(name, partitions, 1, config=given)]).values():
            future.result()
        return name

    def fill(self, topic: str, values: Iterable[Any], key: Callable[[Any], str | None] = lambda _: None) -> None:
        """Produces: bytes and texts as they are, None as a tombstone, the rest as JSON."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        for value in values:
            raw = value if value is None or isinstance(value, bytes | str) else json.dumps(value)
            producer.produce(topic, raw, key=key(value))
            producer.poll(0)
        assert producer.flush(30) == 0

    def read(self, topic: str, count: int) -> list[Message]:
        """The first `count` committed records of a topic, waited for, in the order of their partitions."""
        return self._read(topic, count)

    def all(self, topic: str) -> list[Message]:
        """What is in a topic now, to the last committed record."""
        return self._read(topic, None)

    def json(self, topic: str, count: int) -> list[Any]:
        """The values of the first `count` records."""
        return [json.loads(message.value() or b"null") for message in self.read(topic, count)]

    def _read(self, topic: str, count: int | None) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": unique("reader"),
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not (metadata := consumer.list_topics(topic, timeout=30).topics[topic]).partitions:
                assert time.monotonic() < deadline, f"there is no topic {topic}"
            consumer.assign([TopicPartition(topic, partition, 0) for partition in metadata.partitions])
            ended: set[int | None] = set()
            found: list[Message] = []
            while (len(ended) < len(metadata.partitions)) if count is None else (len(found) < count):
                message = consumer.poll(1)
                assert time.monotonic() < deadline, f"{len(found)} of {count} records of {topic} came"
                if message is None:
                    continue
                if message.error():
                    ended.add(message.partition())
                else:
                    ended.discard(message.partition())
                    found.append(message)
            return sorted(found, key=lambda message: (message.partition() or 0, message.offset() or 0))
        finally:
            consumer.close()

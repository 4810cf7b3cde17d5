"""Read, work, write, each record exactly once: also over kill -9, and with state in memory.

    worker = ExactlyOnce(bootstrap, name="clean-1", group="clean", topics=["raw"], restore=state.restore)
    worker.run(clean, stop)

Records are read in batches. What `clean(records, send)` sends, and how far the group has read, are committed together
in one transaction, so that either both happened or neither. A worker that dies leaves an open transaction behind; the
next one of the same `name` aborts it, takes over its partitions at once (a static member of the group) and begins where
the last committed transaction ended. Readers of the results need `isolation.level=read_committed`, or they see records
that were taken back.

State in memory must never know more than what is committed. So `restore(partitions)` builds it anew, from topics that
were written in the same transactions, whenever partitions are given to this worker and after a transaction that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from example_kit.clients import PARTITIONER, patient
from example_kit.errors import ExampleError

SECONDS = 60.0


class Send(Protocol):
    """Writes a record in the open transaction; the arguments are those of `confluent_kafka.Producer.produce`."""

    def __call__(self, topic: str, /, **record: Any) -> None: ...


Work = Callable[[list[Message], Send], None]
Restore = Callable[[set[int]], None]
"""Gets the numbers of all the partitions that this worker has now."""


class ExactlyOnce:
    """One worker of a group. `name` must be its own, and the same when it is started again."""

    def __init__(
        self,
        bootstrap: str,
        *,
        name: str,
        group: str,
        topics: list[str],
        restore: Restore | None = None,
        batch: int = 500,
        wait: float = 0.2,
    ) -> None:
        self._topics = topics
        self._restore = restore or (lambda partitions: None)
        self._most = batch
        self._wait = wait
        self._batch: list[Message] = []
        self._stale = False
        self._consumer = Consumer(
            {
                **patient(bootstrap),
                "group.id": group,
                "group.instance.id": name,
                "session.timeout.ms": 10_000,  # a worker that does not come back loses its partitions after this
                "heartbeat.interval.ms": 500,  # how soon the others hear that one has come
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 5000,
            }
        )
        self._producer = Producer(
            {
                **patient(bootstrap),
                "transactional.id": name,
                "linger.ms": 5,
                "partitioner": PARTITIONER,
            }
        )

    def run(self, work: Work, stop: Event) -> None:
        """Works until `stop` is set; what is begun then is finished."""
        self._producer.init_transactions(SECONDS)  # aborts what a worker of this name left open
        self._consumer.subscribe(self._topics, on_assign=self._moved, on_revoke=self._moved)
        try:
            while not stop.is_set():
                records = self._read()
                if self._stale:
                    self._renew()
                elif records:
                    self._transact(work, records)
        finally:
            self._consumer.close()

    def send(self, topic: str, /, **record: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, **record)
                return
            except BufferError:  # the producer's queue is full: let it send
                self._producer.poll(0.1)

    def flush(self) -> None:
        """Until all that was sent is written, in the open transaction: then the delivery callbacks know its offsets."""
        while self._producer.flush(SECONDS):
            pass

    def _transact(self, work: Work, records: list[Message]) -> None:
        ends = {(record.topic(), record.partition()): record.offset() for record in records}
        positions = [
            TopicPartition(str(topic), number or 0, (offset or 0) + 1) for (topic, number), offset in ends.items()
        ]
        try:
            self._producer.begin_transaction()
            work(records, self.send)
            self._producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), SECONDS)
            commit(self._producer)
        except KafkaException as failure:
            abort(self._producer, failure)
            self._stale = True

    def _read(self) -> list[Message]:
        """Up to a batch. A rebalance in between empties it: the partitions' new owners read those records."""
        self._batch = []
        record = self._consumer.poll(self._wait)
        while record is not None:
            error = record.error()
            if error is None:
                self._batch.append(record)
            elif not error.retriable():
                raise KafkaException(error)
            record = self._consumer.poll(0) if len(self._batch) < self._most and not self._stale else None
        return self._batch

    def _moved(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._batch.clear()
        self._stale = True

    def _renew(self) -> None:
        """State and positions as they are committed."""
        mine = self._consumer.assignment()
        self._restore({part.partition for part in mine})
        if mine:
            committed = self._consumer.committed(mine, SECONDS)
            for part in committed:
                part.offset = part.offset if part.offset >= 0 else OFFSET_BEGINNING
            self._consumer.assign(committed)
        self._stale = False


def commit(producer: Producer) -> None:
    """Commits the open transaction, however often that must be tried."""
    while True:
        try:
            producer.commit_transaction(SECONDS)
            return
        except KafkaException as failure:
            if not failure.args[0].retriable():
                raise


def abort(producer: Producer, failure: KafkaException) -> None:
    """Takes the open transaction back after a failure; if it cannot be, that is the end of this producer."""
    error = failure.args[0]
    if error.fatal():
        raise ExampleError(
            f"this worker must stop, another one of its name may have taken over: {error.str()}"
        ) from failure
    producer.abort_transaction(SECONDS)

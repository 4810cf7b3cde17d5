"""Request and reply over topics: ask the bank something, and wait for the answer.

A command goes out with two headers, `reply-to` and `correlation-id`. The answer comes on the reply topic with the same
correlation id, to whoever waits for it. No answer in time says nothing about the command: it may be carried out later.
So a client that tries again sends the same command id, and the bank does not carry it out twice.
"""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from event_sourcing.store import COMMANDS, REPLIES
from example_kit.clients import PARTITIONER, patient
from example_kit.reading import header

Answer = dict[str, Any]


class NoAnswerError(Exception):
    """Nobody answered in time."""


class Bank:
    """A client of the bank; a context manager."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({**patient(bootstrap), "linger.ms": 2, "partitioner": PARTITIONER})
        self._consumer = Consumer(
            {
                **patient(bootstrap),
                "group.id": "bank-clients",  # not used: every client reads all replies from now on
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        _, end = self._consumer.get_watermark_offsets(TopicPartition(REPLIES, 0), 30.0)
        self._consumer.assign([TopicPartition(REPLIES, 0, end)])
        self._waiting: dict[str, Future[Answer]] = {}
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.late = 0
        """Answers that came when nobody waited any more."""

    def __enter__(self) -> Bank:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._reader.join()
        self._consumer.close()
        self._producer.close()

    def ask(self, kind: str, account: str, *, timeout: float = 20.0, **fields: Any) -> Answer:
        """Sends a command and waits for its answer."""
        correlation = uuid.uuid4().hex
        future = self.send(kind, account, correlation=correlation, **fields)
        self._producer.flush(timeout)
        try:
            return future.result(timeout)
        except TimeoutError:
            self._waiting.pop(correlation, None)
            raise NoAnswerError(f"no answer to {kind} within {timeout:g} s") from None

    def send(
        self, kind: str, account: str, *, correlation: str | None = None, command: str | None = None, **fields: Any
    ) -> Future[Answer]:
        """Sends a command; its answer comes later. `command` is its id, when it is sent again."""
        correlation = correlation or uuid.uuid4().hex
        value = {"id": command or uuid.uuid4().hex, "kind": kind, "account": account, **fields}
        future: Future[Answer] = Future()
        self._waiting[correlation] = future
        headers: dict[str, str | bytes | None] = {"reply-to": REPLIES, "correlation-id": correlation}
        self._producer.produce(COMMANDS, key=account, value=json.dumps(value), headers=headers)
        self._producer.poll(0)
        return future

    def send_raw(self, key: str, value: bytes) -> None:
        """Something that may be no command at all."""
        self._producer.produce(COMMANDS, key=key, value=value)
        self._producer.flush(30.0)

    def flush(self) -> None:
        self._producer.flush(30.0)

    def _read(self) -> None:
        while not self._stop.is_set():
            record = self._consumer.poll(0.1)
            if record is None:
                continue
            if (error := record.error()) is not None:
                if not error.retriable():
                    raise KafkaException(error)
                continue
            future = self._waiting.pop(header(record, "correlation-id"), None)
            if future is None:
                self.late += 1
            else:
                future.set_result(json.loads(record.value() or b""))

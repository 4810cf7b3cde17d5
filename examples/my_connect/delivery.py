"""Delivers messages to inboxes: a worker of group `my-connect-delivery`, exactly once.

Whether a message may be delivered depends on who is there and who is connected, which is in two compacted topics. Each
worker reads them as tables, and before it judges a batch of messages it reads them up to their ends as they are then. A
connection that was written before a message was sent is therefore always known.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from example_kit import parent_says_stop, tell
from example_kit.clients import patient
from example_kit.exactly_once import ExactlyOnce, Send
from my_connect.diagnostics import ends_of
from my_connect.topics import CONNECTIONS, DEAD_LETTERS, DELIVERY, INBOXES, MESSAGES, PROFILES, pair

SECONDS = 30.0


class RefusedError(Exception):
    """Not to be delivered; says why."""


class Tables:
    """Who is there, and who is connected with whom."""

    def __init__(self, bootstrap: str) -> None:
        self.people: set[str] = set()
        self.pairs: set[str] = set()
        self._consumer = Consumer(
            {
                **patient(bootstrap),
                "group.id": f"{DELIVERY}-tables",  # nothing is committed: a worker needs all of it
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._bootstrap = bootstrap
        self._read_to = dict.fromkeys((PROFILES, CONNECTIONS), 0)
        self._consumer.list_topics(timeout=SECONDS)
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in self._read_to])

    def catch_up(self) -> None:
        """Reads on to the ends as they are now. Another connection asks for them: this one waits for records."""
        ends = ends_of(self._bootstrap, list(self._read_to))
        while any(self._read_to[topic] < end for (topic, _), end in ends.items()):
            record = self._consumer.poll(1.0)
            if record is None:
                continue
            if (error := record.error()) is not None:
                if not error.retriable():
                    raise KafkaException(error)
                continue
            topic = record.topic() or ""
            self._read_to[topic] = (record.offset() or 0) + 1
            self._apply(topic, record.key() or b"", record.value())

    def _apply(self, topic: str, key: str | bytes, value: str | bytes | None) -> None:
        name = key.decode() if isinstance(key, bytes) else key
        table = self.people if topic == PROFILES else self.pairs
        gone = value is None or (topic == CONNECTIONS and not json.loads(value)["connected"])
        (table.discard if gone else table.add)(name)

    def check(self, message: dict[str, Any]) -> None:
        """RefusedError if it may not be delivered."""
        if message["to"] not in self.people:
            raise RefusedError("no such person")
        if pair(message["from"], message["to"]) not in self.pairs:
            raise RefusedError("not connected")


class Delivery:
    """One worker."""

    def __init__(self, bootstrap: str) -> None:
        self._tables = Tables(bootstrap)

    def work(self, records: list[Message], send: Send) -> None:
        self._tables.catch_up()
        for record in records:
            try:
                message = parsed(record.value())
                self._tables.check(message)
            except RefusedError as error:
                origin = f"{record.topic()}-{record.partition()}@{record.offset()}"
                headers = {"error": str(error), "origin": origin}
                send(DEAD_LETTERS, key=record.key(), value=record.value(), headers=headers)
            else:
                send(INBOXES, key=message["to"], value=record.value())


def parsed(value: str | bytes | None) -> dict[str, Any]:
    """The message; RefusedError if it is none."""
    try:
        message = json.loads(value or b"")
        if all(isinstance(message[name], str) for name in ("id", "from", "to", "text")) and message["sent_at"] >= 0:
            return dict(message)
    except (ValueError, TypeError, KeyError):
        pass
    raise RefusedError("malformed")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--name", required=True)
    options = parser.parse_args()
    stop = parent_says_stop()
    worker = ExactlyOnce(
        options.bootstrap,
        name=options.name,
        group=DELIVERY,
        topics=[MESSAGES],
        restore=lambda partitions: tell(worker=options.name, partitions=sorted(partitions)),
        batch=200,
        wait=0.05,
    )
    worker.run(Delivery(options.bootstrap).work, stop)


if __name__ == "__main__":
    main()

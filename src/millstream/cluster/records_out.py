"""Records out of a topic: from a place, up to the end that was there at the start, and on from there if wanted.

`Reader` reads partitions that it chose itself; `GroupReader` is a member of a consumer group and commits the position
after every record that it gave out. The end is known even where the last offsets hold no record (markers of
transactions, compaction), through librdkafka's end-of-partition events.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import Unreachable
from millstream.cluster.positions import (
    Position,
    bounds,
    chosen_partitions,
    offsets_of,
    topic_partitions,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

ISOLATIONS = ("read_uncommitted", "read_committed")
POLL_SECONDS = 0.2
"""How long Ctrl-C may wait."""
BATCH = 500


class Record(NamedTuple):
    """One record; `timestamp` is -1 if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    def names(self) -> dict[str, Any]:
        """The record as a filter sees it: text where it is text, headers by name (the last wins)."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": text_of(self.key),
            "value": text_of(self.value),
            "headers": {name: text_of(value) for name, value in self.headers},
        }


class Hooks(NamedTuple):
    """What a reader tells while it reads: trouble that it waits out, and that it is about to wait for records."""

    warn: Callable[[str], None] = lambda sentence: None
    idle: Callable[[], None] = lambda: None


def text_of(data: bytes | None) -> str | None:
    """The text that bytes are; what is not UTF-8 in them is written as \\xNN."""
    return None if data is None else data.decode(errors="backslashreplace")


class Reader:
    """Reads chosen partitions of a topic, without a group."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        start: Position,
        *,
        partitions: Iterable[int] = (),
        isolation: str = ISOLATIONS[0],
        hooks: Hooks | None = None,
    ) -> None:
        from confluent_kafka import TopicPartition

        with connection.admin() as admin:
            chosen = chosen_partitions(topic, topic_partitions(admin, topic), partitions, "--partition")
            limits = bounds(admin, topic, chosen, committed=isolation == "read_committed")
            offsets = offsets_of(admin, topic, start, limits)
        self.starts = offsets
        self.ends = {partition: limit.end for partition, limit in limits.items()}
        self._events = _Events(
            connection, topic, {"group.id": "millstream", "isolation.level": isolation}, hooks or Hooks()
        )
        self._events.consumer.assign([TopicPartition(topic, part, offset) for part, offset in offsets.items()])
        self._waiting = {part for part, offset in offsets.items() if offset < self.ends[part]}
        self._early: list[Record] = []

    def to_end(self) -> Iterator[Record]:
        """What was there when the reader started."""
        self._events.patient = False
        while self._waiting:
            for partition, offset, record in self._events.next():
                if record is not None and offset < self.ends[partition]:
                    yield record
                elif record is not None:
                    self._early.append(record)
                if offset + (record is not None) >= self.ends[partition]:
                    self._waiting.discard(partition)

    def onward(self) -> Iterator[Record]:
        """Everything from here on, for ever."""
        self._events.patient = True
        early, self._early = self._early, []
        yield from early
        while True:
            for _, _, record in self._events.next():
                if record is not None:
                    yield record

    def close(self) -> None:
        self._events.consumer.close()


class GroupReader:
    """Reads as a member of a group, from its positions; `start` is for partitions where it has none yet."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        start: Position,
        *,
        isolation: str = ISOLATIONS[0],
        hooks: Hooks | None = None,
    ) -> None:
        with connection.admin() as admin:
            present = topic_partitions(admin, topic)
            limits = bounds(admin, topic, present, committed=isolation == "read_committed")
        self.ends = {partition: limit.end for partition, limit in limits.items()}
        properties = {
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest" if start.kind == "beginning" else "latest",
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 1000,
        }
        self._events = _Events(connection, topic, properties, hooks or Hooks())
        self._waiting: set[int] | None = None
        self._events.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def to_end(self) -> Iterator[Record]:
        """What was there when the reader started, of the partitions that the group gives to this member."""
        self._events.patient = False
        yield from self._read(forever=False)

    def onward(self) -> Iterator[Record]:
        """Everything from the group's positions on, for ever."""
        self._events.patient = True
        yield from self._read(forever=True)

    def close(self) -> None:
        """Leaves the group; what was taken is committed."""
        self._events.consumer.close()

    def _read(self, *, forever: bool) -> Iterator[Record]:
        from confluent_kafka import KafkaException, TopicPartition

        while forever or self._waiting is None or self._waiting:
            for partition, offset, record in self._events.next():
                ends = self.ends.get(partition, 0)
                if record is not None and (forever or offset < ends):
                    with contextlib.suppress(KafkaException):  # the partition was given to another member meanwhile
                        self._events.consumer.store_offsets(
                            offsets=[TopicPartition(record.topic, partition, offset + 1)]
                        )
                    yield record
                if self._waiting and offset + (record is not None) >= ends:
                    self._waiting.discard(partition)

    def _assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._waiting = {place.partition for place in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._waiting = (self._waiting or set()) - {place.partition for place in partitions}


class _Events:
    """The consumer's messages and ends of partitions: (partition, offset, record or None)."""

    def __init__(self, connection: Connection, topic: str, properties: dict[str, Any], hooks: Hooks) -> None:
        self.patient = False
        self._topic = topic
        self._warn, self._idle = hooks
        self._down = False
        self.consumer = connection.consumer(
            {
                "enable.auto.commit": "enable.auto.offset.store" in properties,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "error_cb": self._trouble,
                **properties,
            }
        )

    def next(self) -> Iterator[tuple[int, int, Record | None]]:
        """What has arrived; if that is nothing, what arrives in the next moment."""
        messages = self.consumer.consume(BATCH, 0)
        if not messages:
            self._idle()
            first = self.consumer.poll(POLL_SECONDS)
            messages = [] if first is None else [first]
        if self._down and not self.patient:
            raise Unreachable(f"topic {self._topic}: the cluster does not answer any more")
        for message in messages:
            yield self._event(message)

    def _event(self, message: Message) -> tuple[int, int, Record | None]:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is None:
            self._down = False
            return partition or 0, offset or 0, _record(message)
        if error.name() != "_PARTITION_EOF":
            refuse_client(f"topic {self._topic}", error)
        return partition or 0, offset or 0, None

    def _trouble(self, error: Any) -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and not self._down:
            self._down = True
            if self.patient:
                self._warn("the cluster does not answer; waiting for it to come back")


def _record(message: Message) -> Record:
    stamp: Any = message.timestamp()
    headers: Any = message.headers() or []
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        stamp[1] if stamp[0] else -1,  # (type, milliseconds); type 0 is `none`
        _bytes(message.key()),
        _bytes(message.value()),
        [(name, _bytes(value)) for name, value in headers],
    )


def _bytes(data: Any) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def json_of(record: Record) -> dict[str, Any]:
    """The record for machines; `produce --format json` takes it back. Bytes that are not text are base64."""
    key, key_encoding = _json_text(record.key)
    value, value_encoding = _json_text(record.value)
    found: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": key,
        "value": value,
        "headers": [
            {"key": name, "value": text} | ({"value_encoding": encoding} if encoding else {})
            for name, (text, encoding) in ((name, _json_text(data)) for name, data in record.headers)
        ],
    }
    if key_encoding:
        found["key_encoding"] = key_encoding
    if value_encoding:
        found["value_encoding"] = value_encoding
    return found


def json_line(record: Record) -> str:
    return json.dumps(json_of(record), ensure_ascii=False)


def _json_text(data: bytes | None) -> tuple[str | None, str | None]:
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(data).decode(), "base64"

"""Reading ranges of offsets from many partitions at once, in order in each, committed records only.

A range ends with a record at or behind its end, or when the client reports the end of the partition there: the last
offsets of a partition may hold transaction markers and aborted records, which no client ever shows. Memory is bounded
by what the client fetches ahead and by the size of one chunk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from millstream.cluster.answers import refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import Unreachable
from millstream.cluster.graduation.plan import Partition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

SILENCE_SECONDS = 60.0
"""A cluster that sends nothing for so long, though there are records to be read, is taken for gone."""
_CHUNK_BYTES = 8 * 1024 * 1024
_CHUNK_RECORDS = 10_000
_CHUNK_SECONDS = 0.05
"""How long a chunk waits to become full."""
_EMPTY_SIZE = 16
_PROPERTIES = {
    "group.id": "millstream-graduate",  # wanted by the client; nothing is committed and nothing joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "queued.max.messages.kbytes": 8192,
    "fetch.message.max.bytes": 1048576,
    "fetch.wait.max.ms": 50,  # the end of a partition is reported when a fetch finds nothing
    "fetch.error.backoff.ms": 100,
}


class Chunk:
    """Some records of some partitions, and the partitions whose range ends with them."""

    def __init__(self) -> None:
        self.records: dict[Partition, list[Message]] = {}
        self.finished: list[Partition] = []


def size_of(message: Message) -> int:
    """The bytes of a record that its producer gave: key and value."""
    return len(message.key() or b"") + len(message.value() or b"")


def read(connection: Connection, ranges: Mapping[Partition, tuple[int, int]]) -> Iterator[Chunk]:
    """The records of each range [first, end), until all ranges have ended."""
    from confluent_kafka import TopicPartition

    ends = {where: end for where, (first, end) in ranges.items() if end > first}
    if not ends:
        return
    consumer = connection.consumer({**_PROPERTIES, "error_cb": lambda error: None})
    try:
        consumer.assign([TopicPartition(*where, ranges[where][0]) for where in ends])
        yield from _chunks(consumer, ends)
    finally:
        consumer.close()


def _chunks(consumer: Consumer, ends: dict[Partition, int]) -> Iterator[Chunk]:
    from confluent_kafka import TopicPartition

    count, heard = 500, time.monotonic()
    while ends:
        messages = consumer.consume(count, _CHUNK_SECONDS)
        if messages:
            heard = time.monotonic()
        elif time.monotonic() - heard > SILENCE_SECONDS:
            waiting = ", ".join(map(str, sorted(ends)[:5]))
            raise Unreachable(
                f"nothing came from {waiting} for {SILENCE_SECONDS:.0f} s, though there are records to be read"
            )
        chunk, size = Chunk(), 0
        for message in messages:
            where = Partition(message.topic() or "", message.partition() or 0)
            end = ends.get(where)
            if end is None:
                continue
            offset = message.offset() or 0
            error = message.error()
            if error is not None:
                if error.name() != "_PARTITION_EOF":
                    refuse_client(f"reading {where}", error)
            elif offset < end:
                chunk.records.setdefault(where, []).append(message)
                size += size_of(message) + _EMPTY_SIZE
                offset += 1
            if offset >= end:
                del ends[where]
                chunk.finished.append(where)
        if chunk.finished and ends:
            consumer.incremental_unassign([TopicPartition(*where) for where in chunk.finished])
        if chunk.records or chunk.finished:
            yield chunk
        if size:
            count = max(1, min(_CHUNK_RECORDS, _CHUNK_BYTES * len(messages) // size))

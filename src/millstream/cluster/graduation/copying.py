"""Copies records from partition to partition, each at the offset that it has at the source.

The producer is idempotent and each partition is written by one producer in order; every acknowledgement is checked
against the offset that was expected, so a second writer is noticed with its first record. Where the next record's
offset is not the next at the target, the partition waits until all before it is acknowledged, and the offsets between
are filled (`gaps`).

Crash behaviour: a partition's start is saved before its first real record is sent. Without a saved start, whatever the
target's partition holds is filler that may be deleted; with one, it is a prefix of the source's partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import refuse, refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.graduation.gaps import Markers, filler
from millstream.cluster.graduation.plan import Partition
from millstream.cluster.graduation.reading import Chunk, read, size_of

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer
    from kafka.admin import KafkaAdminClient

BATCH_BYTES = 1_000_000
_MESSAGE_BYTES = 1_000_000_000  # the client's upper bound; the target's own limit decides
_PROPERTIES = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "batch.size": BATCH_BYTES,
    "message.max.bytes": _MESSAGE_BYTES,
    "queue.buffering.max.kbytes": 65536,
    "message.timeout.ms": 120_000,
}
_FILLER_POLL = 1000


class Track:
    """Where the copy of one partition stands."""

    def __init__(self, where: Partition, *, first: int, at: int, goal: int, start: int | None, codec: str) -> None:
        self.where = where
        self.first = first
        """The source's log start offset."""
        self.next = at
        """The offset that the next record sent gets."""
        self.acknowledged = at
        self.goal = goal
        self.start = start
        """The first offset at the target; None until the offsets before it are filled."""
        self.codec = codec
        self.records = 0
        self.bytes = 0
        self.placeholders = 0


class Progress(NamedTuple):
    """How far a copy or a verification is."""

    offsets: int
    records: int
    bytes: int


class Copier:
    """One pass over a set of partitions; `save` is called when starts became known, before real records are sent."""

    def __init__(
        self,
        source: Connection,
        target: Connection,
        admin: KafkaAdminClient,
        tracks: Iterable[Track],
        *,
        visible_fillers: bool,
        save: Callable[[], None],
        progress: Callable[[Progress], None],
    ) -> None:
        self._source = source
        self._target = target
        self._admin = admin
        self._tracks = {track.where: track for track in tracks}
        self._markers = Markers(admin)
        self._visible_fillers = visible_fillers
        self._save = save
        self._progress = progress
        self._producers: dict[str, Producer] = {}
        self._problem: ClusterError | None = None
        self._before = sum(track.next for track in self._tracks.values())

    def run(self) -> None:
        """Until every partition has reached its goal and all is acknowledged."""
        ranges = {where: (max(track.next, track.first), track.goal) for where, track in self._tracks.items()}
        nothing_to_read = Chunk()
        nothing_to_read.finished = [where for where, (first, end) in ranges.items() if first >= end > 0]
        self._write(nothing_to_read)
        reported = 0.0
        for chunk in read(self._source, ranges):
            self._write(chunk)
            if time.monotonic() - reported > 0.1:
                self._report()
                reported = time.monotonic()
        self._flush()
        self._report()

    def _report(self) -> None:
        tracks = self._tracks.values()
        self._progress(
            Progress(
                sum(track.next for track in tracks) - self._before,
                sum(track.records for track in tracks),
                sum(track.bytes for track in tracks),
            )
        )

    def _write(self, chunk: Chunk) -> None:
        waiting: dict[Partition, list[Message]] = {where: records[::-1] for where, records in chunk.records.items()}
        for where in chunk.finished:
            waiting.setdefault(where, [])
        while waiting:
            gaps: dict[Partition, tuple[int, int]] = {}
            for where, records in waiting.items():
                track = self._tracks[where]
                self._send_until_gap(track, records)
                if records:
                    gaps[where] = records[-1].offset() or 0, records[-1].timestamp()[1]
                elif where in chunk.finished and (track.next < track.goal or track.start is None):
                    gaps[where] = track.goal, 1
            if gaps:
                self._flush()
                self._fill(gaps)
            waiting = {where: waiting[where] for where in gaps}

    def _send_until_gap(self, track: Track, records: list[Message]) -> None:
        """Sends from the end of the reversed list, and leaves there what lies behind a gap."""
        while records:
            offset = records[-1].offset() or 0
            if offset < track.next:  # the client began to read before it had to
                records.pop()
                continue
            if offset > track.next or track.start is None:
                return
            message = records.pop()
            self._send(
                track,
                key=message.key(),
                value=message.value(),
                headers=message.headers(),
                timestamp=portable_timestamp(message.timestamp()[1]),
            )
            track.records += 1
            track.bytes += size_of(message)

    def _fill(self, gaps: Mapping[Partition, tuple[int, int]]) -> None:
        leading = {where: gap for where, gap in gaps.items() if self._tracks[where].start is None}
        inner = {where: gap for where, gap in gaps.items() if where not in leading}
        if leading:
            self._send_fillers(leading)
            for where, (offset, _) in leading.items():
                self._tracks[where].start = offset
            self._save()
            delete_before(self._admin, {where: offset for where, (offset, _) in leading.items() if offset})
        if self._visible_fillers:
            self._send_fillers(inner)
        elif inner:
            self._markers.fill({where: offset for where, (offset, _) in inner.items()})
            for where, (offset, _) in inner.items():
                track = self._tracks[where]
                track.placeholders += offset - track.next
                track.next = track.acknowledged = offset

    def _send_fillers(self, gaps: Mapping[Partition, tuple[int, int]]) -> None:
        for where, (offset, timestamp) in gaps.items():
            track = self._tracks[where]
            record = filler(portable_timestamp(timestamp))
            if track.start is not None:
                track.placeholders += offset - track.next
            while track.next < offset:
                self._send(track, **record)
                if track.next % _FILLER_POLL == 0:
                    self._report()
        self._flush()

    def _send(self, track: Track, **record: Any) -> None:
        producer = self._producers.get(track.codec)
        if producer is None:
            properties = {**_PROPERTIES, "compression.type": track.codec, "error_cb": lambda error: None}
            producer = self._producers[track.codec] = self._target.producer(properties)
        while True:
            try:
                producer.produce(
                    track.where.topic, partition=track.where.partition, on_delivery=self._delivered, **record
                )
                break
            except BufferError:
                producer.poll(0.1)
                self._raise_problem()
        track.next += 1
        if track.next % 256 == 0:
            producer.poll(0)
            self._raise_problem()

    def _delivered(self, error: Any, message: Message) -> None:
        if self._problem is not None:
            return
        where = Partition(message.topic() or "", message.partition() or 0)
        track = self._tracks[where]
        if error is not None:
            try:
                refuse_client(f"{where}: the record of offset {track.acknowledged} was not taken", error)
            except ClusterError as problem:
                self._problem = problem
        elif message.offset() != track.acknowledged:
            self._problem = ClusterError(
                f"{where}: the record of offset {track.acknowledged} got offset {message.offset()} at the target: "
                "somebody else writes to this topic. Delete it there and start again"
            )
        else:
            track.acknowledged += 1

    def _flush(self) -> None:
        for producer in self._producers.values():
            while producer.flush(1.0):
                self._raise_problem()
        self._raise_problem()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            for producer in self._producers.values():
                producer.purge()
            raise self._problem


def portable_timestamp(timestamp: int) -> int:
    """The client takes 0 for `now`: the first millisecond of 1970 becomes the second one."""
    return timestamp or 1


def delete_before(admin: KafkaAdminClient, starts: Mapping[Partition, int]) -> None:
    """DeleteRecords: puts the log start of partitions at these offsets."""
    from kafka import TopicPartition

    if starts:
        answers = admin.delete_records({TopicPartition(*where): offset for where, offset in starts.items()})
        for where, answer in answers.items():
            if answer["error_code"]:
                refuse(
                    f"deleting the records of {where.topic}-{where.partition} before its start",
                    answer["error_code"],
                    "",
                )

"""Dead letters back to where they came from: the record as it was, to its topic, once.

What was sent is remembered in the consumer group `millstream-<pipeline>-redrive`, for each partition of the dead-letter
topic: the committed offset is the first letter that is still to be sent, and the commit's metadata says which letters
behind it have been sent already (a bitmap, for what a filter picked out). It is committed after the cluster has
acknowledged the records: a crash in between sends some of them again, and never loses one.

A record keeps its key, value, headers and partition; its timestamp is new, for with an old one retention could delete
it at once. The header `millstream.redriven` counts how many times it was sent. A letter without an origin in a topic
(a row of a database, say) is left where it is, unless somebody says to which topic it shall go.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import refuse, refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.positions import Position
from millstream.pipelines.dead_letters import REDRIVEN, DeadLetter, Wanted, read

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from kafka.admin import KafkaAdminClient

CHUNK = 500
"""Letters that are sent, acknowledged and committed together."""
SPAN = 24_000
"""How far behind the first unsent letter others can be remembered: in bits, of the 4,096 bytes of metadata."""
DELIVERY_SECONDS = 30.0
METADATA_SECONDS = 10.0
MOST_PLACES = 10
_BITMAP = "sent:"
_NOBODY_ANSWERS = ("_MSG_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_PURGE_QUEUE", "_PURGE_INFLIGHT")


class Sent(NamedTuple):
    """What has been sent of one partition: everything before `position`, and these behind it."""

    position: int = 0
    behind: frozenset[int] = frozenset()

    def has(self, offset: int) -> bool:
        return offset < self.position or offset in self.behind

    def metadata(self) -> str:
        bits = sum(1 << (offset - self.position) for offset in self.behind if offset - self.position < SPAN)
        if not bits:
            return ""
        data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
        return _BITMAP + base64.b64encode(zlib.compress(data, 9)).decode()

    @classmethod
    def committed(cls, position: int, metadata: str) -> Sent:
        """As it was committed; metadata that is not ours is none."""
        if not metadata.startswith(_BITMAP):
            return cls(position)
        try:
            data = zlib.decompress(base64.b64decode(metadata.removeprefix(_BITMAP), validate=True))
        except (binascii.Error, zlib.error):
            return cls(position)
        bits = int.from_bytes(data, "little")
        return cls(position, frozenset(position + n for n in range(bits.bit_length()) if bits >> n & 1))


class Left(NamedTuple):
    """Letters that stay: why, how many, and where the first of them are."""

    why: str
    letters: int
    places: tuple[str, ...]


class Redrive(NamedTuple):
    """How many letters were (or would be) sent, by topic; and those that stay."""

    sent: dict[str, int]
    left: list[Left]

    @property
    def total(self) -> int:
        return sum(self.sent.values())


class Redriver:
    """Sends the dead letters of one pipeline back. `clusters` says which topics are elsewhere than the letters."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        pipeline: str,
        wanted: Wanted | None = None,
        *,
        to: str | None = None,
        clusters: Mapping[str, Connection] | None = None,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._pipeline = pipeline
        self._wanted = (wanted or Wanted())._replace(pipeline=pipeline)
        self._to = to
        self._clusters = clusters or {}
        self._producers: dict[str, Producer] = {}
        self._partitions: dict[str, int | None] = {}
        self.group = redrive_group(pipeline)

    def plan(self) -> Redrive:
        """What `execute` would do."""
        tally = _Tally()
        for choice in self._choices(sent(self._connection, self._topic, self._pipeline)):
            tally.count(choice)
        return tally.result()

    def execute(self, check: Callable[[], None] = lambda: None) -> Redrive:
        """Sends, waits for the acknowledgement, commits; chunk by chunk. `check` may raise between two of them.

        ClusterError if the cluster does not answer: what it acknowledged is committed, the rest stays.
        """
        tally = _Tally()
        before = sent(self._connection, self._topic, self._pipeline)
        tracks = {partition: _Track(found) for partition, found in before.items()}
        chunk: list[_Choice] = []
        with self._connection.admin() as admin:
            for choice in self._choices(before):
                chunk.append(choice)
                if len(chunk) == CHUNK:
                    self._do(admin, chunk, tracks, tally)
                    chunk = []
                    check()
            self._do(admin, chunk, tracks, tally)
        return tally.result()

    def _choices(self, before: Mapping[int, Sent]) -> Iterator[_Choice]:
        """Every letter that was not sent before, and what becomes of it if all goes well."""
        tracks = {partition: _Track(found) for partition, found in before.items()}
        start = Position("offset", min((found.position for found in before.values()), default=0))
        for letter in read(self._connection, self._topic, start):
            known = before.get(letter.partition, Sent())
            track = tracks.setdefault(letter.partition, _Track(known))
            if known.has(letter.offset) or letter.pipeline != self._pipeline:
                choice = _Choice(letter, done=True)
            elif not self._wanted.takes(letter):
                choice = _Choice(letter)
            elif track.is_blocked and letter.offset - track.position >= SPAN:
                choice = _Choice(letter, why_not=f"offset {track.position} has to be sent first: it is too far behind")
            else:
                choice = self._choice(letter)
            track.settle(letter.offset, choice.done or choice.target is not None)
            yield choice

    def _choice(self, letter: DeadLetter) -> _Choice:
        if self._to is None and (letter.origin is None or not letter.origin.is_record):
            source = f" (source {letter.origin.topic})" if letter.origin is not None else ""
            return _Choice(letter, why_not=f"it is no record of a topic{source}: --to TOPIC says where to send it")
        target = self._to or (letter.origin.topic if letter.origin is not None else "")
        if self._count(target) is None:
            return _Choice(letter, why_not=f"there is no topic {target} any more: --to TOPIC says where to send it")
        return _Choice(letter, target)

    def _do(self, admin: KafkaAdminClient, chunk: Sequence[_Choice], tracks: dict[int, _Track], tally: _Tally) -> None:
        """One chunk: sent, acknowledged, committed."""
        delivery = self._deliver(chunk)
        changed: dict[int, _Track] = {}
        for number, choice in enumerate(chunk):
            letter, acknowledged = choice.letter, number in delivery.acknowledged
            track = tracks.setdefault(letter.partition, _Track(Sent()))
            track.settle(letter.offset, choice.done or acknowledged)
            if acknowledged:
                changed[letter.partition] = track
            if choice.target is None or acknowledged:
                tally.count(choice)
            elif number in delivery.refused:
                reason = f"the cluster refuses it: {delivery.refused[number]}"
                tally.count(choice._replace(target=None, why_not=reason))
        self._commit(admin, {partition: track.sent() for partition, track in changed.items()})
        if delivery.silence:
            raise ClusterError(
                f"the cluster does not take records any more ({delivery.silence}): {tally.total:,} were sent and are "
                "remembered, the others stay; the same command goes on"
            )

    def _deliver(self, chunk: Sequence[_Choice]) -> _Delivery:
        """Produces what has a target, and waits for what the cluster says to each."""
        delivery = _Delivery(set(), {})
        wanted = [number for number, choice in enumerate(chunk) if choice.target is not None]
        self._deliver_together(chunk, wanted, delivery)
        for number in sorted(delivery.refused):  # a bad record has its whole batch refused: each for itself, then
            del delivery.refused[number]
            self._deliver_together(chunk, [number], delivery)
        if not delivery.silence and len(delivery.acknowledged) + len(delivery.refused) < len(wanted):
            delivery.silence = "no answer in time"
        return delivery

    def _deliver_together(self, chunk: Sequence[_Choice], numbers: Iterable[int], delivery: _Delivery) -> None:
        from confluent_kafka import KafkaException

        for number in numbers:
            try:
                self._produce(chunk[number], partial(delivery.told, number))
            except KafkaException as error:
                delivery.told(number, error.args[0], None)
        for producer in self._producers.values():
            producer.flush(DELIVERY_SECONDS + 1)  # the producer itself gives a record up first

    def _produce(self, choice: _Choice, told: Callable[[Any, Any], None]) -> None:
        letter, target = choice.letter, choice.target or ""
        producer = self._producer(target)
        optional: dict[str, Any] = {}
        if self._to is None and letter.origin is not None and letter.origin.partition is not None:
            count = self._count(target) or 0
            optional = {"partition": letter.origin.partition} if letter.origin.partition < count else {}
        headers: list[tuple[str, str | bytes | None]] = [*letter.headers, (REDRIVEN, str(letter.redriven + 1).encode())]
        while True:
            try:
                producer.produce(target, letter.value, letter.key, headers=headers, on_delivery=told, **optional)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _producer(self, target: str) -> Producer:
        connection = self._clusters.get(target, self._connection)
        if connection.bootstrap not in self._producers:
            self._producers[connection.bootstrap] = connection.producer(
                {
                    "enable.idempotence": True,
                    "partitioner": "murmur2_random",
                    "message.max.bytes": 1_000_000_000,  # the broker decides what is too large
                    "message.timeout.ms": int(DELIVERY_SECONDS * 1000),
                    "allow.auto.create.topics": False,
                }
            )
        return self._producers[connection.bootstrap]

    def _count(self, target: str) -> int | None:
        """The partitions of a topic; None if there is none."""
        from confluent_kafka import KafkaException

        if target not in self._partitions:
            try:
                known = self._producer(target).list_topics(timeout=METADATA_SECONDS).topics
            except KafkaException as error:
                refuse_client(f"topic {target}", error)
            self._partitions[target] = len(known[target].partitions) if target in known else None
        return self._partitions[target]

    def _commit(self, admin: KafkaAdminClient, found: Mapping[int, Sent]) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        if not found:
            return
        offsets = {
            TopicPartition(self._topic, partition): OffsetAndMetadata(done.position, done.metadata(), -1)
            for partition, done in found.items()
        }
        for place, error in admin.alter_group_offsets(self.group, offsets).items():
            if error.errno:
                refuse(f"group {self.group}, {place.topic}-{place.partition}", error.errno, None)


def redrive_group(pipeline: str) -> str:
    """The group that remembers what was sent."""
    return f"millstream-{pipeline}-redrive"


def sent(connection: Connection, topic: str, pipeline: str) -> dict[int, Sent]:
    """What was sent of each partition; partitions of which nothing was are not there."""
    group = redrive_group(pipeline)
    with connection.admin() as admin:
        offsets = admin.list_group_offsets({group: None})[group]
    return {
        place.partition: Sent.committed(found.offset, found.metadata or "")
        for place, found in offsets.items()
        if place.topic == topic and found.offset >= 0
    }


class _Choice(NamedTuple):
    """A letter and what becomes of it: it goes to `target`, it is `done` already, or it stays, perhaps for a reason."""

    letter: DeadLetter
    target: str | None = None
    why_not: str | None = None
    done: bool = False


@dataclass
class _Delivery:
    """What the cluster said to the records of a chunk, by their number in it."""

    acknowledged: set[int]
    refused: dict[int, str]
    silence: str = ""
    """Why no answer came, if none did for some."""

    def told(self, number: int, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.add(number)
        elif error.name() in _NOBODY_ANSWERS:
            self.silence = str(error.str())
        else:
            self.refused[number] = str(error.str())


class _Track:
    """Follows one partition's letters in order: up to the first that stays the position moves on, then it remembers."""

    def __init__(self, begin: Sent) -> None:
        self.position = begin.position
        self.is_blocked = False
        self._behind = set(begin.behind)

    def settle(self, offset: int, done: bool) -> None:
        if offset < self.position:
            return
        if not self.is_blocked:
            self._behind.discard(offset)
            self.position = offset + 1 if done else offset
            self.is_blocked = not done
        elif done:
            self._behind.add(offset)

    def sent(self) -> Sent:
        return Sent(self.position, frozenset(offset for offset in self._behind if offset > self.position))


class _Tally:
    """Counts what becomes of letters."""

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}
        self._left: dict[str, Left] = {}

    @property
    def total(self) -> int:
        return sum(self._sent.values())

    def count(self, choice: _Choice) -> None:
        if choice.target is not None:
            self._sent[choice.target] = self._sent.get(choice.target, 0) + 1
        elif choice.why_not is not None:
            place = f"{choice.letter.partition}:{choice.letter.offset}"
            known = self._left.get(choice.why_not, Left(choice.why_not, 0, ()))
            places = (*known.places, place) if len(known.places) < MOST_PLACES else known.places
            self._left[choice.why_not] = Left(choice.why_not, known.letters + 1, places)

    def result(self) -> Redrive:
        return Redrive(dict(sorted(self._sent.items())), list(self._left.values()))

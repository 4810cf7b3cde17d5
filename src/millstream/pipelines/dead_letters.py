"""Dead letters: records that a pipeline could not process, in a topic of their own, with the reason.

A dead letter is the record as it was read: key, value and headers. Its own headers come last, all values are text:

    millstream.pipeline           the pipeline that could not process it
    millstream.stage              where: a step, a sink, the source
    millstream.error              the kind of error
    millstream.message            the error's message
    millstream.origin.topic       where the record came from; with partition, offset and timestamp (milliseconds). A row
    millstream.origin.partition   that is no topic's record has the source's name as topic and nothing else
    millstream.origin.offset
    millstream.origin.timestamp
    millstream.time               when it went wrong, in milliseconds since 1970

A record that was sent back to its topic (`redrive`) carries `millstream.redriven`, how many times. A name may repeat,
if a pipeline reads the dead letters of another: the last one is its own, those before are part of the record.

A cause groups letters: same pipeline, stage and error, and messages that differ in numbers and quoted text only.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput
from millstream.cluster.positions import Position
from millstream.cluster.records_out import Reader, Record, text_of

PIPELINE = "millstream.pipeline"
STAGE = "millstream.stage"
ERROR = "millstream.error"
MESSAGE = "millstream.message"
ORIGIN_TOPIC = "millstream.origin.topic"
ORIGIN_PARTITION = "millstream.origin.partition"
ORIGIN_OFFSET = "millstream.origin.offset"
ORIGIN_TIMESTAMP = "millstream.origin.timestamp"
TIME = "millstream.time"
REDRIVEN = "millstream.redriven"
OWN = (PIPELINE, STAGE, ERROR, MESSAGE, ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP, TIME)
LONGEST_MESSAGE = 2000
"""A message is cut off here, so that no error can make a record too large for its topic."""
MOST_CAUSES = 1000
"""Of more, only the number of letters is known."""
Headers = list[tuple[str, bytes | None]]
Ranges = Mapping[int, list[tuple[int, int]]]
"""Partition -> offsets, from the first to the last, both included."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_VARYING = re.compile(r"\b(?:[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|[0-9a-fA-F]{16,})\b|-?\d+(?:[.:]\d+)*")
_RANGE = re.compile(r"(\d{1,9}):(\d{1,18})(?:-(\d{1,18}))?")


class Origin(NamedTuple):
    """Where a letter's record was read."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp: int | None

    @property
    def is_record(self) -> bool:
        """Whether it is a record of a topic, not a row of something else."""
        return self.partition is not None and self.offset is not None


class CauseKey(NamedTuple):
    """What letters of the same cause have in common; `message` is without what varies."""

    pipeline: str
    stage: str
    error: str
    message: str

    @property
    def id(self) -> str:
        """Short enough to type."""
        return hashlib.sha256("\0".join(self).encode()).hexdigest()[:8]


class DeadLetter(NamedTuple):
    """One dead letter; `headers` are the record's own."""

    topic: str
    partition: int
    offset: int
    time: int
    pipeline: str
    stage: str
    error: str
    message: str
    origin: Origin | None
    redriven: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def cause(self) -> CauseKey:
        return CauseKey(self.pipeline, self.stage, self.error, normalised(self.message))


class Cause(NamedTuple):
    """Letters of one cause: how many, when the first and the last came, and the last one."""

    key: CauseKey
    letters: int
    first: int
    last: int
    example: DeadLetter


class Wanted(NamedTuple):
    """Which letters are meant; what is None does not matter. `cause` is the beginning of a cause's id."""

    pipeline: str | None = None
    stage: str | None = None
    error: str | None = None
    cause: str | None = None
    offsets: Ranges | None = None

    def takes(self, letter: DeadLetter) -> bool:
        return (
            self.pipeline in (None, letter.pipeline)
            and self.stage in (None, letter.stage)
            and self.error in (None, letter.error)
            and (self.cause is None or letter.cause.id.startswith(self.cause))
            and (self.offsets is None or _within(letter.offset, self.offsets.get(letter.partition, ())))
        )


def letter_of(record: Record) -> DeadLetter:
    """A record of a dead-letter topic taken apart. A header that is missing or makes no sense is as good as none."""
    own: dict[str, str] = {}
    rest: Headers = []
    for name, value in reversed(record.headers):
        if name in OWN and name not in own:
            own[name] = text_of(value) or ""
        else:
            rest.append((name, value))
    redriven = [_number(text_of(value)) or 0 for name, value in rest if name == REDRIVEN]
    origin = None
    if own.get(ORIGIN_TOPIC):
        numbers = (_number(own.get(name)) for name in (ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP))
        origin = Origin(own[ORIGIN_TOPIC], *numbers)
    return DeadLetter(
        record.topic,
        record.partition,
        record.offset,
        _number(own.get(TIME)) or record.timestamp,
        own.get(PIPELINE, ""),
        own.get(STAGE, ""),
        own.get(ERROR, ""),
        own.get(MESSAGE, ""),
        origin,
        max(redriven, default=0),
        record.key,
        record.value,
        [header for header in reversed(rest) if header[0] != REDRIVEN],
    )


def read(connection: Connection, topic: str, start: Position | None = None) -> Iterator[DeadLetter]:
    """The letters up to the end as it is now, those of a partition in the order of their offsets.

    NotFound if there is no such topic.
    """
    start = start or Position("beginning")
    with closing(Reader(connection, topic, start, isolation="read_committed")) as reader:
        for record in reader.to_end():
            yield letter_of(record)


def newest(connection: Connection, topic: str, wanted: Wanted, most: int) -> list[DeadLetter]:
    """At most so many of those that are wanted, the newest first."""
    last = list(read(connection, topic, Position("last", most)))
    if not all(map(wanted.takes, last)):  # further back there may be newer ones than in another partition's last
        last = heapq.nlargest(most, filter(wanted.takes, read(connection, topic)), key=_newness)
    return sorted(last, key=_newness, reverse=True)[:most]


def causes(letters: Iterable[DeadLetter]) -> tuple[list[Cause], int]:
    """The causes, the most frequent first; and how many letters had causes beyond the number that is kept."""
    found: dict[CauseKey, Cause] = {}
    others = 0
    for letter in letters:
        key = letter.cause
        known = found.get(key)
        if known is not None:
            newer = letter if letter.time >= known.last else known.example
            first, last = min(known.first, letter.time), max(known.last, letter.time)
            found[key] = Cause(key, known.letters + 1, first, last, newer)
        elif len(found) < MOST_CAUSES:
            found[key] = Cause(key, 1, letter.time, letter.time, letter)
        else:
            others += 1
    return sorted(found.values(), key=lambda cause: (-cause.letters, cause.key)), others


def normalised(message: str) -> str:
    """A message without what differs from record to record: quoted text, numbers, ids."""
    return " ".join(_VARYING.sub("N", _QUOTED.sub("'...'", message)).split())[:200]


def parse_offsets(texts: Iterable[str], argument: str) -> dict[int, list[tuple[int, int]]]:
    """`0:17` and `0:10-20`, several with commas; BadInput, naming the argument, if it is neither."""
    found: dict[int, list[tuple[int, int]]] = {}
    for text in texts:
        for part in text.split(","):
            match = _RANGE.fullmatch(part.strip())
            if match is None or int(match[3] or match[2]) < int(match[2]):
                raise BadInput(f"{argument}: {part!r} is not PARTITION:OFFSET or PARTITION:FIRST-LAST, such as 0:10-20")
            found.setdefault(int(match[1]), []).append((int(match[2]), int(match[3] or match[2])))
    return found


def as_json(letter: DeadLetter) -> dict[str, Any]:
    """For machines; bytes that are not text have `\\xNN` in them."""
    return {
        **letter._asdict(),
        "cause": letter.cause.id,
        "origin": None if letter.origin is None else letter.origin._asdict(),
        "key": text_of(letter.key),
        "value": text_of(letter.value),
        "headers": [{"key": name, "value": text_of(value)} for name, value in letter.headers],
    }


def _within(offset: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= offset <= last for first, last in ranges)


def _newness(letter: DeadLetter) -> tuple[int, int, int]:
    return letter.time, letter.partition, letter.offset


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else None

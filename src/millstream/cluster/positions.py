"""Places in a topic as people write them, and the offsets that they mean in each partition.

    beginning, end      also earliest, latest, all
    1500                an offset
    -20                 the last 20 of each partition
    2026-05-01T12:00    a moment (UTC unless it says otherwise); 1777636800000 and @1777636800000 in milliseconds
    15m                 that long ago (s, m, h, d)

A moment means the first record at or after it, and the end of the partition if there is none. Offsets outside a
partition mean its nearest end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from millstream.cluster.answers import nearest
from millstream.cluster.errors import BadInput, ClusterError, NotFound

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

FORMS = (
    "beginning, end, an offset, -N for the last N, a time (2026-05-01T12:00 or @MILLISECONDS), or 15m for that long ago"
)
_AGO = re.compile(r"(\d+)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MILLISECONDS_FROM = 10**12
"""A plain number from here on (13 digits, the year 2001) is a time: no partition has as many records."""


class Position(NamedTuple):
    """A place in any partition: its kind, and the offset, count or milliseconds since 1970."""

    kind: Literal["beginning", "end", "offset", "last", "time"]
    number: int = 0


class Bounds(NamedTuple):
    """The first offset of a partition and the one after its last."""

    first: int
    end: int


def parse_position(text: str, argument: str) -> Position:
    """BadInput, naming the argument, if it is none of the forms."""
    word = text.strip().lower()
    if word in ("beginning", "earliest"):
        return Position("beginning")
    if word in ("end", "latest", "all"):
        return Position("end")
    if re.fullmatch(r"\d{1,18}", word):
        number = int(word)
        return Position("time" if number >= _MILLISECONDS_FROM else "offset", number)
    if re.fullmatch(r"-\d{1,18}", word):
        return Position("last", -int(word))
    if (moment := parse_time(text)) is not None:
        return Position("time", moment)
    raise BadInput(f"{argument}: {text!r} is not a place in a topic: it can be {FORMS}")


def parse_time(text: str) -> int | None:
    """Milliseconds since 1970 of a moment or of a time ago; None if it is neither."""
    text = text.strip()
    if re.fullmatch(r"@\d{1,15}", text):
        return int(text[1:])
    if ago := _AGO.fullmatch(text.lower()):
        return int(time.time() * 1000) - int(ago[1]) * _SECONDS[ago[2]] * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def time_text(milliseconds: int) -> str:
    """A moment as people read it; negative ones, which Kafka has for `none`, as a dash."""
    if not 0 <= milliseconds < 253402300800000:  # the end of the year 9999
        return "-" if milliseconds < 0 else f"@{milliseconds}"
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def topic_partitions(admin: KafkaAdminClient, topic: str) -> list[int]:
    """The partitions of one topic, in order; NotFound, with the name that was probably meant, if there is none."""
    (found,) = admin.describe_topics([topic])
    if found["error_code"]:
        unknown_topic(topic, admin.list_topics())
    return sorted(part["partition_index"] for part in found["partitions"])


def unknown_topic(topic: str, known: Iterable[str]) -> NoReturn:
    raise NotFound(f"there is no topic {topic}{nearest(topic, known)} (`millstream topic list` shows all)")


def chosen_partitions(topic: str, present: list[int], wanted: Iterable[int], argument: str) -> list[int]:
    """The wanted ones, or all if none is named; BadInput if one is not there."""
    chosen = sorted(set(wanted))
    for partition in chosen:
        if partition not in present:
            raise BadInput(f"{argument}: {topic} has no partition {partition}, it has 0 to {len(present) - 1}")
    return chosen or present


def bounds(
    admin: KafkaAdminClient, topic: str, partitions: Iterable[int], *, committed: bool = False
) -> dict[int, Bounds]:
    """The ends of each partition; `committed` takes the last stable offset for the end."""
    first = look_up(admin, topic, dict.fromkeys(partitions, -2))
    end = look_up(admin, topic, dict.fromkeys(partitions, -1), committed=committed)
    return {partition: Bounds(first[partition], end[partition]) for partition in first}


def offsets_of(admin: KafkaAdminClient, topic: str, position: Position, ends: dict[int, Bounds]) -> dict[int, int]:
    """The offset that a position means in each of these partitions."""
    if position.kind == "time":
        found = look_up(admin, topic, dict.fromkeys(ends, position.number))
        return {
            partition: ends[partition].end if offset < 0 else min(offset, ends[partition].end)
            for partition, offset in found.items()
        }
    offsets = {}
    for partition, (first, end) in ends.items():
        wanted = {"beginning": first, "end": end, "offset": position.number, "last": end - position.number}
        offsets[partition] = min(max(wanted[position.kind], first), end)
    return offsets


def look_up(
    admin: KafkaAdminClient, topic: str, timestamps: dict[int, int], *, committed: bool = False
) -> dict[int, int]:
    """ListOffsets: the first offset at or after each timestamp, -1 if there is none."""
    from kafka import TopicPartition
    from kafka.errors import UnknownBrokerIdError
    from kafka.protocol.consumer import IsolationLevel

    if not timestamps:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, partition): timestamp for partition, timestamp in timestamps.items()}
    try:
        answers = admin.list_partition_offsets(asked, level)
    except UnknownBrokerIdError as error:
        raise ClusterError(_without_leader(admin, topic, timestamps)) from error
    return {where.partition: answer.offset for where, answer in sorted(answers.items())}


def _without_leader(admin: KafkaAdminClient, topic: str, asked: Iterable[int]) -> str:
    (found,) = admin.describe_topics([topic])
    leaders = {part["partition_index"]: part["leader_id"] for part in found["partitions"]}
    missing = ", ".join(str(partition) for partition in asked if leaders.get(partition, -1) < 0)
    return (
        f"{topic}: no broker leads partition {missing or '?'} now, so nobody can tell its offsets (is a broker down?)"
    )

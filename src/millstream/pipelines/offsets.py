"""Where pipelines are in their topics, as the cluster sees it: group positions, lag, and records that are gone.

A pipeline's progress is its checkpoints. What is committed to its consumer group is for others to see; nothing is ever
read from it to go on. Records that were deleted before they were read are never skipped silently: `gone` finds them,
and `gone_text` says what can be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple

from millstream.cluster.answers import refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, NotFound
from millstream.cluster.positions import Bounds, Position, bounds, offsets_of, topic_partitions
from millstream.pipelines.checkpoints import TopicOffsets

ANSWER_SECONDS = 5.0
TopicBounds = dict[str, dict[int, Bounds]]
"""Topic -> partition -> its first offset and the one after its last."""


class GroupPositions:
    """The positions of a group that nobody is a member of. Keeps one connection for as long as it is open."""

    def __init__(self, connection: Connection, group: str) -> None:
        self.group = group
        # How long librdkafka waits for the group's coordinator is the time after which it would give up a session.
        limits = {"session.timeout.ms": int(ANSWER_SECONDS * 1000), "socket.timeout.ms": int(ANSWER_SECONDS * 1000)}
        self._consumer = connection.consumer({"group.id": group, "enable.auto.commit": False, **limits})

    def __enter__(self) -> GroupPositions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def commit(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commits and waits for the answer; ClusterError if the cluster refuses, or does not answer in time."""
        from confluent_kafka import KafkaException, TopicPartition

        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if not places:
            return
        try:
            answers = self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            refuse_client(f"group {self.group}", error)
        for answer in answers or ():
            if answer.error is not None:
                refuse_client(f"group {self.group}, {answer.topic}-{answer.partition}", answer.error)

    def committed(self, topics: Iterable[str]) -> TopicOffsets:
        """The positions in these topics, where there are any."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            known = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
            places = [
                TopicPartition(topic, partition)
                for topic in topics
                if topic in known
                for partition in known[topic].partitions
            ]
            answers = self._consumer.committed(places, timeout=ANSWER_SECONDS) if places else []
        except KafkaException as error:
            refuse_client(f"group {self.group}", error)
        found: TopicOffsets = {}
        for answer in answers:
            if answer.offset >= 0:
                found.setdefault(answer.topic, {})[answer.partition] = answer.offset
        return found

    def close(self) -> None:
        self._consumer.close()


class Gap(NamedTuple):
    """A position that cannot be gone on from; `first` and `end` are None if the topic or partition is not there."""

    topic: str
    partition: int
    offset: int
    first: int | None
    end: int | None

    @property
    def records(self) -> int | None:
        """How many records were deleted before they were read, at most; None if that cannot be known."""
        return None if self.first is None or self.offset > self.first else self.first - self.offset

    def __str__(self) -> str:
        place = f"{self.topic}-{self.partition}"
        if self.first is None or self.end is None:
            return f"{place} is not there any more (to be read from offset {self.offset})"
        if self.records is None:
            return f"{place} ends at offset {self.end}, but is to be read from {self.offset} on: it was made anew"
        return f"{place} begins at offset {self.first} now: {self.records:,} from {self.offset} on were deleted unread"


def commit_group(connection: Connection, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
    """Commits once."""
    with GroupPositions(connection, group) as positions:
        positions.commit(offsets)


def topic_names(connection: Connection, topics: Iterable[str], pattern: str | None) -> list[str]:
    """The topics that a source means: those named, or those there are now whose whole name fits the pattern."""
    if pattern is None:
        return list(topics)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise BadInput(f"{pattern!r} is not a regular expression: {error}") from error
    with connection.admin() as admin:
        known = [topic for topic in admin.describe_topics() if not topic["is_internal"]]
    return sorted(topic["name"] for topic in known if expression.fullmatch(topic["name"]))


def partition_count(connection: Connection, topics: Iterable[str], pattern: str | None = None) -> int:
    """How many partitions these topics have together; a topic that is not there yet counts as one."""
    names = topic_names(connection, topics, pattern)
    with connection.admin() as admin:
        known = {
            topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics() if not topic["error_code"]
        }
    return sum(known.get(name, 1) for name in names)


def beginning_and_end(connection: Connection, topics: Iterable[str]) -> TopicBounds:
    """The bounds of all partitions of these topics; NotFound if there is no such topic."""
    with connection.admin() as admin:
        return {topic: bounds(admin, topic, topic_partitions(admin, topic)) for topic in topics}


def lag(offsets: Mapping[str, Mapping[int, int]], ends: TopicBounds) -> int:
    """How many records are still to be read; a partition without a position counts from its beginning."""
    return sum(
        max(0, end - offsets.get(topic, {}).get(partition, first))
        for topic, partitions in ends.items()
        for partition, (first, end) in partitions.items()
    )


def resolve(connection: Connection, topics: Iterable[str], position: Position) -> TopicOffsets:
    """The offset that a position means in every partition of these topics, now."""
    with connection.admin() as admin:
        found = {}
        for topic in topics:
            ends = bounds(admin, topic, topic_partitions(admin, topic))
            found[topic] = offsets_of(admin, topic, position, ends)
        return found


def resolve_time(connection: Connection, topics: Iterable[str], milliseconds: int) -> TopicOffsets:
    """The first record at or after a moment in every partition; the end where there is none."""
    return resolve(connection, topics, Position("time", milliseconds))


def gone(connection: Connection, offsets: Mapping[str, Mapping[int, int]]) -> list[Gap]:
    """The positions that cannot be gone on from; none if all records still to be read are there."""
    gaps = []
    for topic, partitions in sorted(offsets.items()):
        try:
            ends = beginning_and_end(connection, [topic])[topic]
        except NotFound:
            ends = {}
        for partition, offset in sorted(partitions.items()):
            first, end = ends.get(partition, (None, None))
            if first is None or end is None or not first <= offset <= end:
                gaps.append(Gap(topic, partition, offset, first, end))
    return gaps


def gone_text(pipeline: str, gaps: Iterable[Gap]) -> str:
    """What is gone and which choices there are. Whoever reads it decides: nothing is skipped by itself."""
    gaps = list(gaps)
    left = ",".join(f"{gap.topic}:{gap.partition}={gap.first}" for gap in gaps if gap.first is not None)
    choices = []
    if left:
        choices.append(f"`millstream pipeline reset {pipeline} --to {left} --execute` goes on with what is left")
    choices += [
        f"`millstream pipeline reset {pipeline} --to earliest --execute` does all that is there again",
        f"`millstream pipeline reset {pipeline} --to latest --execute` goes on with new records only",
    ]
    if any(gap.first is None for gap in gaps):
        choices.insert(0, "make the topic again, or take it out of the pipeline")
    return (
        "records that were not read yet are gone, so it stopped and skipped nothing: "
        f"{'; '.join(map(str, gaps))}. Choose: {'; or '.join(choices)}"
    )

"""Compares what was made with what was saved, row by row: the topic itself is the witness."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from clicks.click import BadClickError, Click, read_click
from clicks.generator import TOPIC
from clicks.member import DEAD_LETTERS
from clicks.stores import open_store
from example_kit import ExampleError, Run

ANSWER_SECONDS = 20.0
POLL_SECONDS = 0.2
MINUTE = 60_000


class Comparison(NamedTuple):
    """What is wrong in a store: nothing, if all but `saved` are 0."""

    saved: int
    missing: int
    doubled: int
    different: int

    @property
    def exactly_once(self) -> bool:
        return not (self.missing or self.doubled or self.different)


def clicks_in(bootstrap: str) -> tuple[dict[str, Click], int]:
    """The clicks in the topic by uuid, and how many of its records are none."""
    clicks = {}
    malformed = 0
    for message in _records(bootstrap, TOPIC):
        try:
            click = read_click(message.value())
        except BadClickError:
            malformed += 1
        else:
            clicks[click.uuid] = click
    return clicks, malformed


def compare(clicks: dict[str, Click], store: str) -> Comparison:
    """The store at this URL, with the clicks that must be in it."""
    opened = open_store(store)
    try:
        return compare_rows(clicks, list(opened.rows()))
    finally:
        opened.close()


def compare_rows(clicks: dict[str, Click], rows: Sequence[Click]) -> Comparison:
    """Rows, with the clicks that must be among them."""
    times = Counter(row.uuid for row in rows)
    return Comparison(
        saved=len(rows),
        missing=sum(uuid not in times for uuid in clicks),
        doubled=sum(count - 1 for count in times.values()),
        different=sum(clicks.get(row.uuid) != row for row in rows),
    )


def minutes_in(bootstrap: str) -> Counter[tuple[int, int]]:
    """(minute, campaign) -> clicks; a minute is given by its beginning, in milliseconds since 1970."""
    minutes: Counter[tuple[int, int]] = Counter()
    for message in _records(bootstrap, TOPIC):
        with contextlib.suppress(ValueError):
            fields = json.loads(message.value() or b"")
            minutes[fields["timestamp"] // MINUTE * MINUTE, fields["campaignId"]] += 1
    return minutes


def count(store: str) -> int:
    """How many clicks are in the store at this URL."""
    opened = open_store(store)
    try:
        return opened.count()
    finally:
        opened.close()


def dead_letters(bootstrap: str) -> dict[str, dict[tuple[int, int], str]]:
    """For each group, where the records were that it could not read (partition and offset), and why not.

    A group whose member was killed at the wrong moment may have sent a letter twice; here it counts once.
    """
    letters: dict[str, dict[tuple[int, int], str]] = defaultdict(dict)
    for message in _records(bootstrap, DEAD_LETTERS):
        headers = dict(message.headers() or [])
        about = {name: value.decode() for name, value in headers.items() if isinstance(value, bytes)}
        letters[about["group"]][int(about["partition"]), int(about["offset"])] = about["error"]
    return letters


def tell_letters(run: Run, letters: Mapping[str, Mapping[tuple[int, int], str]]) -> None:
    """What was wrong with the records that are no clicks, for each group."""
    for group, errors in letters.items():
        reasons = Counter(error.partition(":")[0] for error in errors.values())
        why = ", ".join(f"{times:,} {reason}" for reason, times in reasons.most_common())
        run.say(f"{group} put {len(errors):,} records that are no clicks aside in {DEAD_LETTERS}: {why}", "yellow")


def _records(bootstrap: str, topic: str) -> Iterator[Message]:
    """All records that are in the topic now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "clicks-check", "enable.auto.commit": False})
    try:
        left = {}
        for number in consumer.list_topics(topic).topics[topic].partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_SECONDS)
            if end > first:
                left[number] = end
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        heard = time.monotonic()
        while left:
            messages = consumer.consume(10_000, POLL_SECONDS)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() > heard + ANSWER_SECONDS:
                raise ExampleError(f"topic {topic} cannot be read: no answer for {ANSWER_SECONDS:.0f} s")
            for message in messages:
                failure = message.error()
                if failure is not None:
                    raise KafkaException(failure)
                yield message
                number, offset = message.partition(), message.offset()
                if number in left and offset is not None and offset + 1 >= left[number]:
                    del left[number]
    finally:
        consumer.close()

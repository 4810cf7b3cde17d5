"""How far a group is behind, asked with plain clients; and what is in somebody's inbox."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from example_kit.clients import patient
from example_kit.reading import read_topic
from my_connect.topics import INBOXES, TOPICS

SECONDS = 30.0


@cache
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient(patient(bootstrap))


@cache
def _outsider(bootstrap: str, group: str) -> Consumer:
    """Reads the group's positions without being a member, since it never subscribes."""
    return Consumer({**patient(bootstrap), "group.id": group, "enable.auto.commit": False})


def lag_of(bootstrap: str, group: str, topics: list[str]) -> int:
    """Records of the topics that the group has yet to read."""
    ends = ends_of(bootstrap, topics)
    found = _outsider(bootstrap, group).committed([TopicPartition(*part) for part in ends], SECONDS)
    committed = {(part.topic, part.partition): max(part.offset, 0) for part in found}
    return sum(max(end - committed[part], 0) for part, end in ends.items())


def ends_of(bootstrap: str, topics: list[str]) -> dict[tuple[str, int], int]:
    """Topic and partition -> the offset behind its last record."""
    parts = [TopicPartition(topic, number) for topic in topics for number in range(TOPICS[topic][0])]
    answers = _admin(bootstrap).list_offsets(
        dict.fromkeys(parts, OffsetSpec.latest()),
        isolation_level=IsolationLevel.READ_COMMITTED,
        request_timeout=SECONDS,
    )
    return {(part.topic, part.partition): answers[part].result().offset for part in parts}


def inbox(bootstrap: str, person: str) -> Iterator[dict[str, Any]]:
    """The messages delivered to somebody, in order."""
    for record in read_topic(bootstrap, INBOXES):
        if record.key() == person.encode():
            yield json.loads(record.value() or b"")

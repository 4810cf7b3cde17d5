"""Whether source and target hold the same, record by record; and a consumer that moves from one to the other."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import closing
from typing import cast

from confluent_kafka import Consumer

from example_kit.clients import patient
from example_kit.reading import read_topic
from mirror.copier import PATH_HEADER, Headers

Record = tuple[object, ...]
"""Key, value, headers and timestamp."""


def content(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    """Partition -> its records, without the mirror's own header."""
    found: dict[int, list[Record]] = defaultdict(list)
    for record in read_topic(bootstrap, topic):
        headers = [header for header in cast("Headers", record.headers() or []) if header[0] != PATH_HEADER]
        found[record.partition() or 0].append((record.key(), record.value(), tuple(headers), record.timestamp()))
    return found


def differences(source: dict[int, list[Record]], target: dict[int, list[Record]]) -> int:
    """In how many places the two are not the same."""
    different = 0
    for partition in source.keys() | target.keys():
        here, there = source.get(partition, []), target.get(partition, [])
        different += sum(one != other for one, other in zip(here, there, strict=False)) + abs(len(here) - len(there))
    return different


class Billing:
    """A consumer of group `billing` that bills each order, on whichever cluster it is told to."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self.billed: list[str] = []

    def work(self, most: int | None = None) -> None:
        """Bills `most` orders, or until there are no more for a second; saves first, commits after."""
        settings: dict[str, str | bool | int] = {
            **patient(self._bootstrap),
            "group.id": "billing",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # a position that was not carried over would be noticed
        }
        if most is not None:
            settings["auto.offset.reset"] = "earliest"
        with closing(Consumer(settings)) as consumer:
            consumer.subscribe([self._topic])
            while most is None or len(self.billed) < most:
                record = consumer.poll(20.0 if most or not self.billed else 1.0)
                if record is None:
                    break
                if (error := record.error()) is not None:
                    raise RuntimeError(error.str())
                self.billed.append(json.loads(record.value() or b"")["id"])
                if len(self.billed) % 25 == 0 or len(self.billed) == most:
                    consumer.commit(asynchronous=False)

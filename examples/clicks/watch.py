"""Looks at the groups from outside, as any monitoring would, four times a second.

Lag is what lies in the topic behind the committed offsets. Who owns which partition is what the group's coordinator
says: so a member that was killed keeps its partitions, and their lag grows, until the coordinator has noticed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

LOOK_SECONDS = 0.25
ANSWER_SECONDS = 10.0


class GroupSample(NamedTuple):
    """A group at one moment."""

    lag: Mapping[int, int]
    """By partition."""
    owned: Mapping[str, tuple[int, ...]]
    """Member -> its partitions; as it was before while the group is being rearranged."""

    @property
    def total_lag(self) -> int:
        return sum(self.lag.values())


class Sample(NamedTuple):
    """All groups at one moment, in seconds since the beginning."""

    time: float
    groups: Mapping[str, GroupSample]


class Watch:
    """Takes samples on a thread of its own, from `start` to `stop`."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, clock: Callable[[], float]) -> None:
        """`clock`: seconds since the beginning."""
        self.samples: list[Sample] = []
        self._clock = clock
        self._bootstrap = bootstrap
        self._consumers: dict[str, Consumer] = {}
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._groups: list[str] = []
        self._owned: dict[str, Mapping[str, tuple[int, ...]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def add(self, group: str) -> None:
        """From now on this group is looked at too."""
        if group not in self._groups:
            self._groups = [*self._groups, group]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
            for consumer in self._consumers.values():
                consumer.close()
            del self._admin  # it has no close, and would complain when the cluster goes

    def last(self, group: str) -> GroupSample | None:
        return self.samples[-1].groups.get(group) if self.samples else None

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            with contextlib.suppress(KafkaException):  # then there is a gap in the samples
                self._look()
            self._stop.wait(max(0.0, began + LOOK_SECONDS - time.monotonic()))

    def _look(self) -> None:
        groups = self._groups
        now = self._clock()
        # Positions before ends: a lag may look too large by what came in between, never negative.
        committed = {group: self._committed(group) for group in groups}
        latest = OffsetSpec.latest()
        asked = self._admin.list_offsets(dict.fromkeys(self._partitions, latest), request_timeout=ANSWER_SECONDS)
        ends = {item.partition: future.result(ANSWER_SECONDS).offset for item, future in asked.items()}
        samples = {}
        for group in groups:
            lag = {number: end - committed[group].get(number, 0) for number, end in ends.items()}
            samples[group] = GroupSample(lag, self._owners(group))
        self.samples.append(Sample(now, samples))

    def _committed(self, group: str) -> dict[int, int]:
        """By a consumer that asks but never joins: the admin client's question for a group's offsets can crash the
        process while the coordinator is not there yet (librdkafka 2.16)."""
        if group not in self._consumers:
            self._consumers[group] = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
        found = self._consumers[group].committed(self._partitions, ANSWER_SECONDS)
        return {item.partition: item.offset for item in found if item.offset >= 0}

    def _owners(self, group: str) -> Mapping[str, tuple[int, ...]]:
        (future,) = self._admin.describe_consumer_groups([group], request_timeout=ANSWER_SECONDS).values()
        try:
            description = future.result(ANSWER_SECONDS)
        except KafkaException:
            return {}  # nobody has joined it yet
        if description.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            self._owned[group] = {
                member.client_id: tuple(sorted(item.partition for item in member.assignment.topic_partitions))
                for member in description.members
            }
        return self._owned.get(group, {})

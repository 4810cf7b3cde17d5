"""A member of a consumer group: reads clicks, saves them in a store, and only then commits.

Automatic commits are off and a new group starts at the earliest offset, so whatever happens a click is saved at least
once, and the store makes that exactly once. While the store is away the partitions are paused and the member stays in
its group, with what it holds, until the store takes it. What is no click goes to the dead letters, with the reason,
before the offset behind it is committed.

    CLICKS_STORE=sqlite:clicks.db python -m clicks.member BOOTSTRAP GROUP MEMBER
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from clicks.click import BadClickError, Click, read_click
from clicks.generator import TOPIC
from clicks.stores import Batch, Store, StoreAway, open_store
from example_kit import parent_says_stop, tell

DEAD_LETTERS = "clicks-dead-letters"
STORE_VARIABLE = "CLICKS_STORE"
BATCH = 10_000
BATCH_SECONDS = 0.2
RETRY_SECONDS = 0.5
TELL_SECONDS = 0.5
LONGEST_REASON = 200
SESSION_SECONDS = 6
"""A member that has not been heard of for so long is dead; the least that brokers allow."""


class DeadLetters:
    """The topic for records that are no clicks: the record as it came, and in its headers why and from where."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._group = group
        self._failure: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 10_000,
                "on_delivery": self._delivered,
            }
        )

    def send(self, letters: Sequence[tuple[Message, BadClickError]]) -> None:
        """Sends them and waits for the acknowledgements; StoreAway if there are none."""
        self._failure = None
        for message, error in letters:
            origin = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            about = {"error": str(error)[:LONGEST_REASON], "group": self._group, **origin}
            headers = {name: str(value).encode(errors="replace") for name, value in about.items()}
            self._producer.produce(DEAD_LETTERS, message.value(), message.key(), headers=list(headers.items()))
        left = self._producer.flush()
        if left or self._failure is not None:
            raise StoreAway(f"topic {DEAD_LETTERS}: {self._failure}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._failure = self._failure or error


class Member:
    """The consumer, its store, and what it has to tell."""

    def __init__(self, bootstrap: str, group: str, name: str, store: str, slow: float, stop: threading.Event) -> None:
        """`slow`: seconds that a click takes at least, on average; 0: as long as it must."""
        self._store_url = store
        self._slow = slow
        self._stop = stop
        self._letters = DeadLetters(bootstrap, group)
        self._away_since: float | None = None
        self._uncommitted: dict[int, int] = {}
        self._commit_failed = False
        self._taken_away: set[int] = set()
        self._saved = 0
        self._bad = 0
        self._latencies: Counter[int] = Counter()
        self._next_word = 0.0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": SESSION_SECONDS * 1000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
            }
        )

    # --- the loop ---

    def run(self) -> None:
        store = self._open()
        if store is None:
            return
        self._consumer.subscribe([TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        most = BATCH if not self._slow else max(1, int(0.5 / self._slow))
        try:
            while not self._stop.is_set():
                begun = time.monotonic()
                messages = self._consumer.consume(most, BATCH_SECONDS)
                if messages:
                    self._handle(store, messages)
                self._commit()
                self._tell()
                if self._slow:
                    self._stop.wait(max(0.0, begun + len(messages) * self._slow - time.monotonic()))
        finally:
            self._commit()
            self._consumer.close()
            store.close()
            self._tell(now=True)

    def _open(self) -> Store | None:
        """The store; if it is away, when it is back; None if it is time to stop before that."""
        while not self._stop.is_set():
            try:
                store = open_store(self._store_url)
            except StoreAway as error:
                self._gone(str(error), 0)
                self._stop.wait(RETRY_SECONDS)
            else:
                self._is_back(0)
                return store
        return None

    def _handle(self, store: Store, messages: Sequence[Message]) -> None:
        """Saves what the records hold and notes the offsets to commit."""
        batches, letters = self._sort(messages)
        self._taken_away.clear()
        while not self._stop.is_set():
            try:
                if letters:
                    self._letters.send(letters)
                    self._bad += len(letters)
                    letters = []
                store.save(batches)
            except StoreAway as error:
                self._gone(str(error), sum(len(batch.clicks) for batch in batches))
                self._stay_in_the_group()
                # What is somebody else's now will be read, and saved, by them.
                batches = [batch for batch in batches if batch.partition not in self._taken_away]
                letters = [letter for letter in letters if letter[0].partition() not in self._taken_away]
            else:
                self._is_back(sum(len(batch.clicks) for batch in batches))
                self._uncommitted.update({batch.partition: batch.last + 1 for batch in batches})
                self._commit()
                self._count([click for batch in batches for click in batch.clicks])
                return

    def _sort(self, messages: Sequence[Message]) -> tuple[list[Batch], list[tuple[Message, BadClickError]]]:
        """The clicks by partition, and the rest."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        clicks: dict[int, list[Click]] = defaultdict(list)
        offsets: dict[int, list[int]] = defaultdict(list)
        letters = []
        for message in messages:
            failure = message.error()
            if failure is not None:
                tell(event="trouble", reason=f"hears from the log: {failure.str()}")
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            first.setdefault(partition, offset)
            last[partition] = offset
            try:
                clicks[partition].append(read_click(message.value()))
                offsets[partition].append(offset)
            except BadClickError as error:
                letters.append((message, error))
        batches = [Batch(part, first[part], last[part], offsets[part], clicks[part]) for part in first]
        return batches, letters

    def _commit(self) -> None:
        """Commits what is saved. If the group is being rearranged it may have to wait, or others may have to do it."""
        if not self._uncommitted:
            return
        offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in self._uncommitted.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if not self._commit_failed:
                tell(event="trouble", reason=f"has saved but cannot commit yet ({error.args[0].str()})")
            self._commit_failed = True
        else:
            self._uncommitted.clear()
            self._commit_failed = False

    # --- the store away and back ---

    def _gone(self, reason: str, waiting: int) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            tell(event="away", reason=reason, waiting=waiting)
            self._consumer.pause(self._consumer.assignment())

    def _is_back(self, saved: int) -> None:
        if self._away_since is not None:
            tell(event="back", seconds=time.monotonic() - self._away_since, saved=saved)
            self._away_since = None
            self._consumer.resume(self._consumer.assignment())

    def _stay_in_the_group(self) -> None:
        """Polls, though all partitions are paused: who does not poll is taken for dead."""
        message = self._consumer.poll(RETRY_SECONDS)
        if message is not None and message.error() is None:  # it was already on its way to us: not now
            self._consumer.seek(TopicPartition(TOPIC, message.partition() or 0, message.offset() or 0))

    # --- partitions come and go ---

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        if self._away_since is not None:
            consumer.pause(partitions)
        tell(event="assigned", partitions=[item.partition for item in partitions])

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for item in partitions:
            self._taken_away.add(item.partition)
            self._uncommitted.pop(item.partition, None)
        consumer.incremental_unassign(partitions)
        tell(event="revoked", partitions=[item.partition for item in partitions])

    # --- what it tells ---

    def _count(self, clicks: Sequence[Click]) -> None:
        now = int(time.time() * 1000)
        self._saved += len(clicks)
        self._latencies.update([now - click.timestamp for click in clicks])

    def _tell(self, *, now: bool = False) -> None:
        if now or time.monotonic() >= self._next_word:
            self._next_word = time.monotonic() + TELL_SECONDS
            tell(event="saved", clicks=self._saved, bad=self._bad, latencies=self._latencies)
            self._saved, self._bad = 0, 0
            self._latencies.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description="A member of a group that saves clicks.")
    parser.add_argument("bootstrap")
    parser.add_argument("group")
    parser.add_argument("name")
    parser.add_argument("--slow", type=float, default=0.0)
    options = parser.parse_args()
    stop = parent_says_stop()
    store = os.environ[STORE_VARIABLE]
    Member(options.bootstrap, options.group, options.name, store, options.slow, stop).run()


if __name__ == "__main__":
    main()

"""The mirror itself: topics of one cluster copied to another, each record once, also over kill -9.

Key, value, headers, timestamp and partition stay as they are. The records of a batch, the offsets that they got, and
how far the source has been read are written to the target in one transaction (`offsets`). So the target alone knows
what has been copied: a mirror that starts aborts what its predecessor left half done, reads that, and goes on.

Every copy has a header `mirror-path` with the clusters that it came through. A record that came by a mirror is not
copied on (or, with `--forward`, not to a cluster where it has been): copying in both directions makes no circle.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Event
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from example_kit import ExampleError, create_topic, parent_says_stop, tell
from example_kit.clients import patient
from example_kit.exactly_once import abort, commit
from example_kit.reading import read_topic, text
from mirror.groups import carry_groups
from mirror.offsets import TOPIC, TOPIC_CONFIG, Entry, OffsetTable, Part, runs_of
from mirror.topics import make_alike, matching

PATH_HEADER = "mirror-path"
BATCH = 2000
SECONDS = 30.0
LARGEST_RECORD = 64 << 20

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class Cluster:
    """A cluster and the name by which mirrors know it."""

    name: str
    bootstrap: str


@dataclass(frozen=True)
class Plan:
    """What is to be mirrored, and how."""

    source: Cluster
    target: Cluster
    topics: re.Pattern[str]
    rename: str = "{source}.{topic}"
    groups: re.Pattern[str] | None = None
    forward: bool = False
    skip_gaps: bool = False
    refresh: float = 1.0

    def target_topic(self, topic: str) -> str:
        return self.rename.format(source=self.source.name, topic=topic)


class Mirror:
    """One mirror process. `say` hears what it does."""

    def __init__(self, plan: Plan, say: Callable[..., None]) -> None:
        self.plan = plan
        self._say = say
        self._table = OffsetTable(plan.source.name)
        self._parts: set[Part] = set()
        self._source = AdminClient(patient(plan.source.bootstrap))
        self._target = AdminClient(patient(plan.target.bootstrap))
        self._consumer = Consumer(
            {
                **patient(plan.source.bootstrap),
                "group.id": f"mirror-to-{plan.target.name}",  # never used: positions are on the target
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,  # it tells the position behind transaction markers too
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            }
        )
        self._producer = Producer(
            {
                **patient(plan.target.bootstrap),
                "transactional.id": f"mirror-{plan.source.name}-to-{plan.target.name}",
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.max.bytes": LARGEST_RECORD,
            }
        )

    def run(self, stop: Event) -> None:
        self._start()
        refreshed = -self.plan.refresh
        with closing(self._consumer):
            while not stop.is_set():
                if time.monotonic() - refreshed >= self.plan.refresh:
                    self._refresh()
                    refreshed = time.monotonic()
                records, positions, gap = self._read()
                if positions:
                    self._copy(records, positions)
                if gap:
                    self._assign()

    # --- where to go on ---

    def _start(self) -> None:
        create_topic(self.plan.target.bootstrap, TOPIC, config=TOPIC_CONFIG)
        self._producer.init_transactions(SECONDS)  # from here on an older mirror of this name can write nothing more
        for record in read_topic(self.plan.target.bootstrap, TOPIC):
            self._table.apply(record.key() or b"", record.value())
        self._say(started=f"{self.plan.source.name} to {self.plan.target.name}", known=len(self._table.positions))

    def _refresh(self) -> None:
        """What may have changed meanwhile: topics and partitions, what is left on the target, group positions."""
        try:
            self._find_topics()
            self._forget()
            if self.plan.groups is not None:
                names = {part: self.plan.target_topic(part[0]) for part in self._parts}
                ends = (self.plan.source.bootstrap, self.plan.target.bootstrap)
                for group, count in carry_groups(*ends, self._table, names, self.plan.groups).items():
                    self._say(group=group, positions=count)
        except KafkaException as failure:
            self._say(trouble=f"tried again in a moment: {failure.args[0].str()}")

    def _find_topics(self) -> None:
        topics = matching(self._source, self.plan.topics)
        found = {(topic, number) for topic, partitions in topics.items() for number in range(partitions)}
        if found == self._parts:
            return
        for topic in sorted({topic for topic, _ in found - self._parts}):
            target_topic = self.plan.target_topic(topic)
            make_alike(self._source, self._target, topic, target_topic, topics[topic])
            self._say(topic=topic, target=target_topic, partitions=topics[topic])
        self._parts = found
        self._assign()

    def _assign(self) -> None:
        """Reads on behind what is committed on the target."""
        positions = self._table.positions
        with suppress(KafkaException):  # a client that knows the partitions already begins half a second earlier
            self._consumer.list_topics(timeout=SECONDS)
        self._consumer.assign([TopicPartition(*part, positions.get(part, OFFSET_BEGINNING)) for part in self._parts])

    def _forget(self) -> None:
        runs = {part: TopicPartition(runs[0].target_topic, part[1]) for part, runs in self._table.runs.items() if runs}
        if runs:
            starts = self._target.list_offsets(dict.fromkeys(runs.values(), OffsetSpec.earliest()))
            gone = [
                entry
                for part, there in runs.items()
                for entry in self._table.forgotten(part, starts[there].result().offset)
            ]
            if gone:
                self._transact(lambda: gone)

    # --- copying ---

    def _read(self) -> tuple[list[Message], dict[Part, int], bool]:
        """Records, how far each partition is read with them, and whether a gap in one of them was passed."""
        records: list[Message] = []
        positions: dict[Part, int] = {}
        record = self._consumer.poll(0.1)
        while record is not None:
            part, offset, error = (record.topic() or "", record.partition() or 0), record.offset() or 0, record.error()
            if error is None:
                records.append(record)
                positions[part] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                if offset > self._table.positions.get(part, 0):
                    positions[part] = offset
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                positions[part] = self._gap(part)
                return records, positions, True
            elif not error.retriable():
                raise KafkaException(error)
            record = self._consumer.poll(0) if len(records) < BATCH else None
        return records, positions, False

    def _copy(self, records: list[Message], positions: dict[Part, int]) -> None:
        written: dict[Part, list[tuple[int, int]]] = {}

        def entries() -> list[Entry]:
            for record in records:
                self._send(record, written)
            while self._producer.flush(SECONDS):  # until the delivery reports have told all offsets on the target
                self._say(trouble=f"{self.plan.target.name} takes no records; they wait")
            found = [self._table.position_entry(part, offset) for part, offset in positions.items()]
            for part, pairs in written.items():
                runs = runs_of(self.plan.target_topic(part[0]), pairs)
                found += [self._table.run_entry(part, run) for run in runs]
            return found

        if self._transact(entries):
            self._say(copied=sum(map(len, written.values())))

    def _transact(self, write: Callable[[], list[Entry]]) -> bool:
        """Writes in one transaction: what `write` does, and the entries of `mirror-offsets` that it returns."""
        try:
            self._producer.begin_transaction()
            entries = write()
            for key, value in entries:
                self._producer.produce(TOPIC, key=key, value=value, partition=0)
            commit(self._producer)
        except KafkaException as failure:
            abort(self._producer, failure)
            self._say(trouble=f"a batch was taken back and is copied again: {failure.args[0].str()}")
            self._assign()
            return False
        for key, value in entries:
            self._table.apply(key, value)
        return True

    def _send(self, record: Message, written: dict[Part, list[tuple[int, int]]]) -> None:
        headers = cast("Headers", record.headers() or [])
        passed = [name for key, path in headers if key == PATH_HEADER for name in text(path).split(",")]
        if self.plan.target.name in passed or (passed and not self.plan.forward):
            return
        headers = [header for header in headers if header[0] != PATH_HEADER]
        headers.append((PATH_HEADER, ",".join([*passed, self.plan.source.name]).encode()))
        topic, partition, offset = record.topic() or "", record.partition() or 0, record.offset() or 0

        def delivered(error: KafkaError | None, copy: Message) -> None:
            if error is None:  # with an error the transaction fails
                written.setdefault((topic, partition), []).append((offset, copy.offset() or 0))

        while True:
            try:
                self._producer.produce(
                    self.plan.target_topic(topic),
                    key=record.key(),
                    value=record.value(),
                    headers=headers,
                    partition=partition,
                    timestamp=record.timestamp()[1],
                    on_delivery=delivered,
                )
                return
            except BufferError:  # the queue is full: let it send
                self._producer.poll(0.1)

    def _gap(self, part: Part) -> int:
        """Where to go on if the source has deleted records before they were copied: that is for a person to decide."""
        start, end = self._consumer.get_watermark_offsets(TopicPartition(*part), SECONDS)
        wanted = self._table.positions.get(part, 0)
        what = f"{part[0]}-{part[1]} was copied up to {wanted}, but {self.plan.source.name} now has {start} to {end}"
        if not self.plan.skip_gaps:
            raise ExampleError(f"{what}; --skip-gaps goes on from there")
        self._say(trouble=what)
        return start


def add_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--source", type=cluster, metavar="NAME=HOST:PORT", help="the cluster to read")
    parser.add_argument("--target", type=cluster, metavar="NAME=HOST:PORT", help="the cluster to write to")
    parser.add_argument("--topics", default=".*", metavar="REGEX", help="which topics (default: all)")
    parser.add_argument(
        "--rename", default=Plan.rename, metavar="NAME", help="their names on the target (default: %(default)s)"
    )
    parser.add_argument("--groups", metavar="REGEX", help="carry the positions of these groups (default: none)")
    parser.add_argument("--forward", action="store_true", help="copy on what another mirror brought to the source")
    parser.add_argument("--skip-gaps", action="store_true", help="go on if the source has deleted what was not copied")


def cluster(text: str) -> Cluster:
    name, equals, bootstrap = text.partition("=")
    if not (name and equals and bootstrap):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=HOST:PORT, as east=127.0.0.1:9092")
    return Cluster(name, bootstrap)


def plan_from(options: argparse.Namespace) -> Plan:
    if options.source is None or options.target is None:
        raise ExampleError("say from where to where: --source NAME=HOST:PORT --target NAME=HOST:PORT")
    groups = None if options.groups is None else re.compile(options.groups)
    if groups is not None and "{source}" not in options.rename:
        raise ExampleError(
            "--groups needs {source} in --rename: in a topic that others write to as well, "
            "one position of the source is no one position of the target"
        )
    return Plan(
        options.source,
        options.target,
        re.compile(options.topics),
        options.rename,
        groups,
        options.forward,
        options.skip_gaps,
    )


def main() -> None:
    """The mirror as a child process of the example."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args()
    stop = parent_says_stop()
    Mirror(plan_from(options), tell).run(stop)


if __name__ == "__main__":
    main()

"""What is measured: one table, a row a line, with the goal of each figure as Millstream / Apache Kafka.

A row is prepared once for each server, measured round after round, and cleaned up. `measure` returns its figures and
the bytes that went through the server; CPU and memory are added by `compare`, which watches the server meanwhile.
"""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from bench import loads, raw
from bench.loads import Settings
from bench.systems import System

MB = 1_000_000
CPU = "server CPU"
MEMORY = "peak memory"


class Figure(NamedTuple):
    """Something measured, and what it should be as a ratio of the two."""

    unit: str
    better: Literal["higher", "lower"]
    goal: float | None = None


COSTS = {CPU: Figure("s/GB", "lower", 0.6), MEMORY: Figure("MB", "lower")}
"""Of every row."""


class Measured(NamedTuple):
    """What came out of one run."""

    figures: dict[str, float]
    bytes: int = 0
    """Of records, into or out of the server; 0 where CPU for a gigabyte makes no sense."""


MORE_ROUNDS = 3


class Scale(NamedTuple):
    """How much: 1 is the full benchmark."""

    share: float
    rounds: int
    largest_log: int
    """Bytes of the log for the restart."""
    row_seconds: float = 0.0
    """Rows that take less have more rounds, up to `MORE_ROUNDS` times as many: short runs differ the most."""

    def of(self, count: int, least: int = 128) -> int:
        return max(min(least, count), int(count * self.share))

    def seconds(self, wanted: float) -> float:
        return max(0.5, wanted * min(1.0, self.share * 2))


FULL = Scale(1.0, 5, 5_000 * MB, row_seconds=10.0)
QUICK = Scale(0.1, 2, 500 * MB)
TINY = Scale(0.002, 1, 4 * MB)


@dataclass(frozen=True)
class Row(ABC):
    """A line of the results."""

    name: str
    figures: ClassVar[dict[str, Figure]] = {}
    for_peers: ClassVar[bool] = True
    """Whether other servers than the two can be asked."""
    is_of_its_own: ClassVar[bool] = False
    """Whether it starts servers itself, so that nobody's CPU and memory are to be watched, and nobody gets warm."""
    warm_up: ClassVar[int] = 1
    """Rounds that do not count."""
    patience: ClassVar[int] = 1
    """How many times as long as others it goes on with further rounds."""

    def prepare(self, system: System, scale: Scale) -> Any:
        """What the rounds share; handed to `measure` and `clean_up`."""
        return None

    @abstractmethod
    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured: ...

    def clean_up(self, system: System, prepared: Any) -> None:  # noqa: B027 - most have nothing to do
        """After the last round."""


def _new_topic(system: System, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    """For one run."""
    system.used_topics.append(loads.new_topic(system.bootstrap, partitions, config))
    return system.used_topics[-1]


THROUGHPUT = {"throughput": Figure("records/s", "higher", 1.0)}


@dataclass(frozen=True)
class Produce(Row):
    """Records as fast as the producers can, each with the settings."""

    size: int
    records: int
    settings: Settings = field(default_factory=dict)
    producers: int = 1
    partitions: int = 1
    figures: ClassVar[dict[str, Figure]] = THROUGHPUT

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = scale.of(self.records, 128 * self.producers)
        topic = _new_topic(system, self.partitions)
        seconds = loads.produce(
            system.bootstrap, topic, size=self.size, records=records, producers=self.producers,
            partitions=self.partitions, settings=self.settings,
        )  # fmt: skip
        return Measured({"throughput": records / seconds}, records * self.size)


@dataclass(frozen=True)
class OneRecordRequests(Produce):
    """Each record in a request of its own, many under way."""

    figures: ClassVar[dict[str, Figure]] = {"throughput": Figure("requests/s", "higher", 1.5)}


@dataclass(frozen=True)
class _Through(Row):
    """Records through a topic of its own, at a speed that the load finds out."""

    size: int
    records: int
    figures: ClassVar[dict[str, Figure]] = THROUGHPUT
    passes: ClassVar[int] = 1
    """How often each byte goes into or out of the server."""

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = scale.of(self.records)
        speed = self.speed(system, _new_topic(system), records)
        return Measured({"throughput": speed}, self.passes * records * self.size)

    @abstractmethod
    def speed(self, system: System, topic: str, records: int) -> float:
        """Records a second."""


@dataclass(frozen=True)
class JavaProduce(_Through):
    def speed(self, system: System, topic: str, records: int) -> float:
        return loads.java_produce(system.bootstrap, topic, size=self.size, records=records)


@dataclass(frozen=True)
class ProduceAndConsume(_Through):
    passes: ClassVar[int] = 2

    def speed(self, system: System, topic: str, records: int) -> float:
        return records / loads.produce_and_consume(
            system.bootstrap, topic, size=self.size, records=records, settings={"acks": 1}
        )


@dataclass(frozen=True)
class _Reading(Row):
    """A topic that is filled once and read in each round, out of the page cache."""

    size: int
    records: int
    partitions: int = 1
    figures: ClassVar[dict[str, Figure]] = THROUGHPUT

    def prepare(self, system: System, scale: Scale) -> Any:
        topic = loads.new_topic(system.bootstrap, self.partitions)
        loads.produce(
            system.bootstrap, topic, size=self.size, records=scale.of(self.records), partitions=self.partitions,
            settings={"acks": 1},
        )  # fmt: skip
        return topic

    def clean_up(self, system: System, prepared: Any) -> None:
        loads.delete_topic(system.bootstrap, prepared)

    def _all(self, system: System, topic: str) -> list[int]:
        return loads.end_offsets(system.bootstrap, topic, self.partitions)


@dataclass(frozen=True)
class Consume(_Reading):
    consumers: int = 1

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = self._all(system, prepared)
        seconds = loads.consume(system.bootstrap, prepared, records=records, consumers=self.consumers)
        return Measured({"throughput": sum(records) / seconds}, sum(records) * self.size)


@dataclass(frozen=True)
class ConsumeByGroups(_Reading):
    groups: int = 10

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = sum(self._all(system, prepared))
        seconds = loads.consume_by_groups(system.bootstrap, prepared, records=records, groups=self.groups)
        return Measured({"throughput": records * self.groups / seconds}, records * self.groups * self.size)


@dataclass(frozen=True)
class JavaConsume(_Reading):
    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = sum(self._all(system, prepared))
        speed = loads.java_consume(system.bootstrap, prepared, records=records)
        return Measured({"throughput": speed}, records * self.size)


@dataclass(frozen=True)
class Latency(Row):
    """From just before produce to just after consume, at a fixed rate."""

    size: int
    rate: int
    seconds: float
    figures: ClassVar[dict[str, Figure]] = {
        "p50": Figure("ms", "lower"),
        "p99": Figure("ms", "lower", 0.5),
        "p99.9": Figure("ms", "lower"),
    }
    patience: ClassVar[int] = 6  # one stall of the machine is the p99 of a round

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        topic = _new_topic(system)
        found = loads.latencies(
            system.bootstrap, topic, size=self.size, rate=self.rate, seconds=scale.seconds(self.seconds)
        )
        at = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
        return Measured({name: found[int(len(found) * share)] for name, share in at.items()})


@dataclass(frozen=True)
class Transactions(Row):
    count: int
    figures: ClassVar[dict[str, Figure]] = {"throughput": Figure("transactions/s", "higher", 1.0)}

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        topic = _new_topic(system)
        speed = loads.transactions(system.bootstrap, topic, size=100, number=scale.of(self.count, 10))
        return Measured({"throughput": speed})


@dataclass(frozen=True)
class Flushed(Row):
    """Every record on the disk before it is acknowledged: producers with one record under way each."""

    producers: int
    seconds: float
    figures: ClassVar[dict[str, Figure]] = {"throughput": Figure("records/s", "higher", 2.0)}

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        topic = _new_topic(system, config={"flush.messages": "1"})
        speed = loads.produce_each(
            system.bootstrap, topic, size=1000, producers=self.producers, seconds=scale.seconds(self.seconds),
            settings={"acks": 1},
        )  # fmt: skip
        return Measured({"throughput": speed})


@dataclass(frozen=True)
class Join(Row):
    """Members learn of a rebalance with their next heartbeat: a round takes one or two times half a second."""

    members: int
    patience: ClassVar[int] = 3
    figures: ClassVar[dict[str, Figure]] = {"time": Figure("s", "lower", 1.0)}

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        members = scale.of(self.members, 5)
        topic = _new_topic(system, members)
        return Measured({"time": loads.join(system.bootstrap, topic, members=members)})


@dataclass(frozen=True)
class RawRequests(Row):
    """Ready-made requests from a client that costs next to nothing; also for the plain loop."""

    size: int
    records: int
    """In a request."""
    requests: int
    depth: int
    figures: ClassVar[dict[str, Figure]] = {"throughput": Figure("requests/s", "higher", 1.0)}

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        requests = scale.of(self.requests, 20)
        topic = _new_topic(system) if system.speaks_kafka else "bench"
        frame = raw.produce_frame(topic, size=self.size, records=self.records)
        seconds = raw.push(system.bootstrap, [frame], connections=1, requests=requests, depth=self.depth)
        if system.speaks_kafka:
            found = loads.count(system.bootstrap, topic)
            if found != requests * self.records:
                raise loads.Failed(f"{requests * self.records} records were acknowledged, the end offsets say {found}")
        return Measured({"throughput": requests / seconds}, requests * self.records * self.size)


def _seconds_to_first_record(system: System) -> float:
    """From the start of the process."""
    begin = time.perf_counter()
    system.launch()
    system.wait_until_it_listens()
    loads.first_record(system.bootstrap)
    return time.perf_counter() - begin


@dataclass(frozen=True)
class Start(Row):
    """From the start of the process to a record accepted; and what it holds in memory two seconds later."""

    figures: ClassVar[dict[str, Figure]] = {
        "time": Figure("s", "lower", 0.2),
        "idle memory": Figure("MB", "lower", 0.2),
    }
    for_peers: ClassVar[bool] = False
    is_of_its_own: ClassVar[bool] = True

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        folder = system.folder.with_name(f"{system.folder.name}-start")
        other = type(system)(folder)
        try:
            other.prepare()
            seconds = _seconds_to_first_record(other)
            time.sleep(2)
            return Measured({"time": seconds, "idle memory": other.memory() / MB})
        finally:
            other.kill()
            shutil.rmtree(folder)


@dataclass(frozen=True)
class Restart(Row):
    """After kill -9 in the middle of writing, with a large log: from the start of the process to a record accepted."""

    figures: ClassVar[dict[str, Figure]] = {"time": Figure("s", "lower", 1.0)}
    for_peers: ClassVar[bool] = False
    is_of_its_own: ClassVar[bool] = True

    def prepare(self, system: System, scale: Scale) -> Any:
        other = type(system)(system.folder.with_name(f"{system.folder.name}-large"))
        other.start()
        topic = loads.new_topic(other.bootstrap)
        self._fill(other, topic, scale.largest_log)
        return other, topic

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        other, topic = prepared
        self._fill(other, topic, scale.largest_log // 20)  # so that there is always something not yet flushed
        before = loads.count(other.bootstrap, topic)
        other.kill()
        seconds = _seconds_to_first_record(other)
        found = loads.count(other.bootstrap, topic)
        if found != before:
            raise loads.Failed(f"{before} records were acknowledged, {found} are there after the restart")
        return Measured({"time": seconds})

    def clean_up(self, system: System, prepared: Any) -> None:
        prepared[0].kill()
        shutil.rmtree(prepared[0].folder)

    @staticmethod
    def _fill(other: System, topic: str, size: int) -> None:
        loads.produce(other.bootstrap, topic, size=10_000, records=max(128, size // 10_000), settings={"acks": 1})


ONE_RECORD: Settings = {"acks": 1, "linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1000}
ROWS: tuple[Row, ...] = (
    Produce("produce 100 B, acks=1", 100, 1_200_000, {"acks": 1}),
    Produce("produce 100 B, acks=all", 100, 1_200_000, {"acks": "all"}),
    Produce("produce 100 B, idempotent", 100, 1_200_000, {"enable.idempotence": True}),
    Produce("produce 1 kB, acks=1", 1_000, 400_000, {"acks": 1}),
    Produce("produce 1 kB, acks=all", 1_000, 400_000, {"acks": "all"}),
    Produce("produce 1 kB, idempotent", 1_000, 400_000, {"enable.idempotence": True}),
    Produce("produce 10 kB, acks=1", 10_000, 50_000, {"acks": 1}),
    Produce("produce 10 kB, acks=all", 10_000, 50_000, {"acks": "all"}),
    Produce("produce 10 kB, idempotent", 10_000, 50_000, {"enable.idempotence": True}),
    Produce("produce 1 kB, gzip, 2 producers", 1_000, 50_000, {"acks": 1, "compression.type": "gzip"}, producers=2),
    Produce("produce 1 kB, snappy", 1_000, 400_000, {"acks": 1, "compression.type": "snappy"}),
    Produce("produce 1 kB, lz4", 1_000, 400_000, {"acks": 1, "compression.type": "lz4"}),
    Produce("produce 1 kB, zstd", 1_000, 200_000, {"acks": 1, "compression.type": "zstd"}),
    OneRecordRequests("one-record requests, pipelined", 100, 30_000, ONE_RECORD),
    Produce("produce 1 kB, 10 producers", 1_000, 300_000, {"acks": 1}, producers=10),
    Produce("produce 1 kB, 100 producers", 1_000, 900_000, {"acks": 1}, producers=100),
    Produce("produce 1 kB, 1,000 partitions", 1_000, 300_000, {"acks": 1}, partitions=1_000),
    JavaProduce("produce 1 kB, Java's own tool", 1_000, 600_000),  # the first 300,000 while its JVM gets warm
    Consume("consume 1 kB, one consumer", 1_000, 1_000_000),
    Consume("consume 1 kB, 10 consumers of a topic", 1_000, 1_500_000, partitions=10, consumers=10),
    ConsumeByGroups("consume 1 kB, 10 groups", 1_000, 250_000),
    Consume("consume 1 kB, 1,000 partitions", 1_000, 300_000, partitions=1_000),
    JavaConsume("consume 1 kB, Java's own tool", 1_000, 500_000),
    ProduceAndConsume("produce and consume 1 kB at once", 1_000, 300_000),
    Latency("latency, 1,000 records/s of 100 B", 100, 1_000, 2.0),
    Latency("latency, 5,000 records/s of 100 B", 100, 5_000, 2.0),
    Transactions("transactions of one record", 500),
    Flushed("flush.messages=1, 20 producers", 20, 2.0),
    Join("join of a group of 50", 50),
    RawRequests("raw requests of 1 MB", 1_000, 1_000, 1_000, depth=4),
    RawRequests("raw requests of one record", 100, 1, 30_000, depth=64),
    Start("start to first record"),
    Restart("restart after kill -9, 5 GB log"),
)
TAKE_LONG = ("*1,000 partitions", "restart *")
"""However little is asked of them, so a quick look goes without."""

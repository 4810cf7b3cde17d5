"""The load: real clients on native code (librdkafka through confluent-kafka, Java's own tools), for all the same.

Every load checks what it did: a producer's records are all in the log, a consumer has seen each of them. `Failed` says
what is missing; a result that is not whole is no result.
"""

from __future__ import annotations

import atexit
import multiprocessing
import re
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from multiprocessing.pool import Pool

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from millstream.cluster.bench_worker import payloads
from millstream.engines import jars

PATIENCE = 60.0
MOST_CONSUMERS = 10
Settings = Mapping[str, str | int | float | bool]
QUIET = {"log_level": 0}
"""What clients say of servers that were stopped is not for the terminal; what fails is an exception."""


class Failed(Exception):  # noqa: N818 - it is the load that failed
    """The load did not do what it was to do: there is nothing to report."""


# --- topics


def new_topic(bootstrap: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
    """A name that nobody has, and its leaders are there."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = _admin(bootstrap)
    wanted = NewTopic(name, partitions, 1, config=dict(config or {}))
    for future in admin.create_topics([wanted], operation_timeout=PATIENCE).values():
        future.result(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while not _has_leaders(admin, name, partitions):
        if time.monotonic() > deadline:
            raise Failed(f"{name} has no leaders after {PATIENCE:.0f} s")
    return name


def _has_leaders(admin: AdminClient, name: str, partitions: int) -> bool:
    found = admin.list_topics(timeout=PATIENCE).topics.get(name)
    return (
        found is not None
        and len(found.partitions) == partitions
        and all(partition.leader >= 0 for partition in found.partitions.values())
    )


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def delete_topic(bootstrap: str, name: str) -> None:
    admin = _admin(bootstrap)
    for future in admin.delete_topics([name], operation_timeout=PATIENCE).values():
        future.result(PATIENCE)


def end_offsets(bootstrap: str, topic: str, partitions: int) -> list[int]:
    """Of each partition. A topic that was just made may have leaders who do not know it yet."""
    admin = _admin(bootstrap)
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = admin.list_offsets(wanted, request_timeout=PATIENCE)
            return [found[place].result(PATIENCE).offset for place in wanted]
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def count(bootstrap: str, topic: str, partitions: int = 1) -> int:
    """All records of a topic from which nothing was deleted."""
    return sum(end_offsets(bootstrap, topic, partitions))


# --- producing


class Sender:
    """A producer that has its connection and counts what fails."""

    def __init__(self, bootstrap: str, topic: str, settings: Settings) -> None:
        self.topic = topic
        self.failures: list[str] = []
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "delivery.report.only.error": True,
                "on_delivery": partial(_note, self.failures),  # not a method: a cycle would keep the client
                "error_cb": _ignore,
                "queue.buffering.max.messages": 500_000,
                **QUIET,
                **settings,
            }
        )
        self.producer.list_topics(topic, timeout=PATIENCE)
        self.send_all([b"warm"])

    def send(self, chunk: Sequence[bytes]) -> None:
        produce, topic = self.producer.produce, self.topic
        for value in chunk:
            try:
                produce(topic, value)
            except BufferError:
                self._wait_for_room(value)
        self.producer.poll(0)

    def _wait_for_room(self, value: bytes) -> None:
        while True:
            self.producer.poll(0.01)
            try:
                self.producer.produce(self.topic, value)
                return
            except BufferError:
                continue

    def flush(self) -> None:
        if self.producer.flush(PATIENCE):
            raise Failed(f"{len(self.producer)} records were not acknowledged within {PATIENCE:.0f} s")
        if self.failures:
            raise Failed(f"{len(self.failures)} records were refused: {self.failures[0]}")

    def send_all(self, chunk: Sequence[bytes]) -> None:
        self.send(chunk)
        self.flush()


def _note(failures: list[str], error: KafkaError | None, _: object) -> None:
    if error is not None:
        failures.append(error.str())


def _ignore(_: object) -> None:
    """What matters is said by the records themselves."""


def produce(
    bootstrap: str, topic: str, *, size: int, records: int, producers: int = 1, partitions: int = 1, settings: Settings
) -> float:
    """Seconds from the first record handed over to the last one acknowledged."""
    before = count(bootstrap, topic, partitions)
    senders = [Sender(bootstrap, topic, settings) for _ in range(producers)]
    chunk = payloads(size) * 2
    rounds = -(-records // (len(chunk) * producers))
    begin = time.perf_counter()
    for _ in range(rounds):
        for sender in senders:
            sender.send(chunk)
    for sender in senders:
        sender.flush()
    seconds = time.perf_counter() - begin
    wanted = before + producers + rounds * producers * len(chunk)
    found = count(bootstrap, topic, partitions)
    if found != wanted:
        raise Failed(f"{wanted} records were acknowledged, the end offsets say {found}")
    return seconds * records / (rounds * producers * len(chunk))


def produce_each(bootstrap: str, topic: str, *, size: int, producers: int, seconds: float, settings: Settings) -> float:
    """Acknowledged records a second, each producer with one record in flight."""
    counts = [0] * producers
    senders = [Sender(bootstrap, topic, {"linger.ms": 0, **settings}) for _ in range(producers)]
    value = payloads(size)[:1]
    stop = time.perf_counter() + seconds

    def run(index: int) -> None:
        while time.perf_counter() < stop:
            senders[index].send_all(value)
            counts[index] += 1

    begin = time.perf_counter()
    _in_threads([partial(run, index) for index in range(producers)])
    return sum(counts) / (time.perf_counter() - begin)


def transactions(bootstrap: str, topic: str, *, size: int, number: int) -> float:
    """Transactions a second, of one record each."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0, "error_cb": _ignore, **QUIET}
    )
    producer.init_transactions(PATIENCE)
    value = payloads(size)[0]

    def run(times: int) -> None:
        for _ in range(times):
            producer.begin_transaction()
            producer.produce(topic, value)
            producer.commit_transaction(PATIENCE)

    run(1)
    begin = time.perf_counter()
    run(number)
    seconds = time.perf_counter() - begin
    found = count(bootstrap, topic)
    if found != 2 * (number + 1):  # each has a record and a marker
        raise Failed(f"{number + 1} transactions were committed, the log ends at {found}")
    return number / seconds


def java_produce(bootstrap: str, topic: str, *, size: int, records: int) -> float:
    """Records a second by Kafka's own producer-performance tool, as it says itself."""
    arguments = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
    printed = _java("ProducerPerformance", *arguments, "--producer-props", f"bootstrap.servers={bootstrap}", "acks=1")
    found = re.findall(r"([0-9.]+) records/sec", printed)
    if not found or count(bootstrap, topic) < records:
        raise Failed(f"Java's producer said: {printed[-300:]}")
    return float(found[-1])


def java_consume(bootstrap: str, topic: str, *, records: int) -> float:
    """Records a second while fetching, by Kafka's own consumer-performance tool."""
    arguments = ["--topic", topic, "--num-records", str(records), "--bootstrap-server", bootstrap, "--timeout", "30000"]
    printed = _java("ConsumerPerformance", *arguments)
    header, *lines = [line for line in printed.splitlines() if line.count(",") >= 9]
    names = [name.strip() for name in header.split(",")]
    said = dict(zip(names, [value.strip() for value in lines[-1].split(",")], strict=True))
    if int(said["data.consumed.in.nMsg"]) < records:
        raise Failed(f"Java's consumer said: {printed[-300:]}")
    return float(said["fetch.nMsg.sec"])


def _java(tool: str, *arguments: str) -> str:
    command = [
        jars.find_java(),
        "-Xmx512m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        f"{jars.fetch()}/*",
    ]
    done = subprocess.run(
        [*command, f"org.apache.kafka.tools.{tool}", *arguments], capture_output=True, text=True, timeout=4 * PATIENCE
    )
    if done.returncode:
        raise Failed(f"{tool} ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout


# --- consuming


def consumer(bootstrap: str, group: str = "bench", settings: Settings | None = None) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
            "enable.auto.commit": False,
            "error_cb": _ignore,
            **QUIET,
            **(settings or {}),
        }
    )


def take(client: Consumer, wanted: int) -> float:
    """Until it has seen so many records; when the first of them came, by the performance counter."""
    first, seen, deadline = 0.0, 0, time.monotonic() + PATIENCE
    while seen < wanted:
        messages = client.consume(min(10_000, wanted - seen), 0.1)
        if messages and not seen:
            first = time.perf_counter()
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
        seen += len(messages)
        if time.monotonic() > deadline:
            raise Failed(f"{seen} of {wanted} records came within {PATIENCE:.0f} s")
    return first


def consume(bootstrap: str, topic: str, *, records: Sequence[int], consumers: int = 1) -> float:
    """Seconds from the first record until the consumers have all; each has its share of the partitions, which have so
    many records each."""
    shares = [(range(index, len(records), consumers), sum(records[index::consumers])) for index in range(consumers)]
    return _in_processes([partial(_consume_share, bootstrap, topic, share, count) for share, count in shares if count])


def _consume_share(bootstrap: str, topic: str, partitions: Sequence[int], wanted: int) -> tuple[float, float]:
    client = consumer(bootstrap)
    client.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    return _first_and_last(client, wanted)


def consume_by_groups(bootstrap: str, topic: str, *, records: int, groups: int) -> float:
    """Seconds from the first record until each of the groups, of one member, has everything."""
    return _in_processes([partial(_consume_as_group, bootstrap, topic, records) for _ in range(groups)])


def _consume_as_group(bootstrap: str, topic: str, wanted: int) -> tuple[float, float]:
    client = consumer(bootstrap, f"{topic}-{uuid.uuid4().hex[:6]}")
    client.subscribe([topic])
    return _first_and_last(client, wanted)


def _first_and_last(client: Consumer, wanted: int) -> tuple[float, float]:
    """When the first and the last record came."""
    try:
        return take(client, wanted), time.perf_counter()
    finally:
        client.close()


def _in_processes(works: Sequence[Callable[[], tuple[float, float]]]) -> float:
    """Each in a process of its own, as consumers are: in one, they would wait for one interpreter. Seconds from the
    first record that any of them had to the last."""
    running = [_processes().apply_async(work) for work in works]
    try:
        times = [work.get(2 * PATIENCE) for work in running]
    except multiprocessing.TimeoutError:
        _processes().terminate()
        _processes.cache_clear()
        raise Failed(f"a consumer is still busy after {2 * PATIENCE:.0f} s") from None
    return max(last for _, last in times) - min(first for first, _ in times)


@cache
def _processes() -> Pool:
    """They stay for the next round, and end with this one."""
    pool = multiprocessing.get_context("spawn").Pool(MOST_CONSUMERS)
    atexit.register(pool.terminate)
    return pool


def produce_and_consume(bootstrap: str, topic: str, *, size: int, records: int, settings: Settings) -> float:
    """Seconds from the first record handed over to the last one consumed, both at the same time."""
    sender = Sender(bootstrap, topic, settings)
    client = consumer(bootstrap)
    client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    take(client, 1)
    chunk = payloads(size)
    rounds = -(-records // len(chunk))

    def send() -> None:
        for _ in range(rounds):
            sender.send(chunk)
        sender.flush()

    begin = time.perf_counter()
    _in_threads([send, lambda: _ignore(take(client, rounds * len(chunk)))])
    seconds = time.perf_counter() - begin
    client.close()
    return seconds * records / (rounds * len(chunk))


def latencies(bootstrap: str, topic: str, *, size: int, rate: int, seconds: float) -> list[float]:
    """Milliseconds of each record from just before produce to just after it is consumed, at a fixed rate; sorted."""
    sender = Sender(bootstrap, topic, {"linger.ms": 0, "acks": 1})
    client = consumer(bootstrap, settings={"enable.partition.eof": True})
    client.assign([TopicPartition(topic, 0, OFFSET_END)])
    while True:
        message = client.poll(PATIENCE)
        if message is None:
            raise Failed("the consumer did not get to the end of the topic")
        if message.error() is not None:
            break
    wanted = int(rate * seconds)
    found: list[float] = []
    filler = payloads(size)[0][20:]
    marks = [f"{number:020d}".encode() + filler for number in range(wanted)]
    sent = [0.0] * wanted

    def receive() -> None:
        deadline = time.monotonic() + seconds + PATIENCE
        while len(found) < wanted and time.monotonic() < deadline:
            message = client.poll(1.0)
            if message is not None and message.error() is None:
                now = time.perf_counter()
                found.append((now - sent[int((message.value() or b"")[:20])]) * 1000)

    reader = threading.Thread(target=receive)
    reader.start()
    begin = time.perf_counter()
    for number, value in enumerate(marks):
        time.sleep(max(0.0, begin + number / rate - time.perf_counter()))
        sent[number] = time.perf_counter()
        sender.producer.produce(topic, value)
    sender.flush()
    reader.join()
    client.close()
    if len(found) != wanted:
        raise Failed(f"{len(found)} of {wanted} records came")
    return sorted(found[wanted // 10 :])


def join(bootstrap: str, topic: str, *, members: int) -> float:
    """Seconds until each member of a new group has its one partition of the topic."""
    group = f"{topic}-{uuid.uuid4().hex[:6]}"
    settings: Settings = {"heartbeat.interval.ms": 500, "session.timeout.ms": 45_000}
    clients = [consumer(bootstrap, group, settings) for _ in range(members)]
    deadline = time.monotonic() + PATIENCE
    begin = time.perf_counter()
    for client in clients:
        client.subscribe([topic])
    waiting = list(clients)
    while waiting:
        for client in clients:
            client.poll(0)
        waiting = [client for client in clients if len(client.assignment()) != 1]
        if time.monotonic() > deadline:
            raise Failed(f"{len(waiting)} of {members} members have no partition after {PATIENCE:.0f} s")
        time.sleep(0.005)
    seconds = time.perf_counter() - begin
    _in_threads([client.close for client in clients])
    return seconds


def first_record(bootstrap: str) -> None:
    """Until a new topic has taken a record."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "error_cb": _ignore, **QUIET})
    producer.produce(f"first-{uuid.uuid4().hex[:8]}", b"first")
    if producer.flush(PATIENCE):
        raise Failed(f"the first record was not acknowledged within {PATIENCE:.0f} s")


def _in_threads(works: Sequence[Callable[[], None]]) -> None:
    """All at once; the first failure is the caller's, and so is one that does not end: clients may hang for ever."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    deadline = time.monotonic() + 2 * PATIENCE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if failures:
        raise failures[0]
    late = sum(thread.is_alive() for thread in threads)
    if late:
        raise Failed(f"{late} of {len(threads)} clients are still busy after {2 * PATIENCE:.0f} s")

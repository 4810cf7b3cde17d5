"""One client of a measurement, in a process of its own: `python -m millstream.cluster.bench_worker`.

It reads its job as one line of JSON from standard input, warms up, prints `{"ready": true}`, and begins with the next
line of input; the end of the input means stop. While it works it prints `{"done": N}` a few times a second, and last
of all its result: records, bytes, start and end by the machine's monotonic clock, failures and histograms of times.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream.cluster.connection import Connection
from millstream.cluster.histogram import Histogram

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer

REPORT_SECONDS = 0.2
_PAYLOADS = 64
_SILENCE_SECONDS = 10.0


class Worker:
    """A client at work; `run` prints its result."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.connection = Connection(job["bootstrap"], job["properties"])
        self.stop = threading.Event()
        self.acknowledged, self.arrived = Histogram(), Histogram()
        self.records = self.bytes = self.failures = 0
        self.failure = ""
        self._measuring = False
        self._reported = 0.0

    def run(self) -> None:
        measure = {"produce": self._produce, "consume": self._consume, "latency": self._latency}[self.job["kind"]]
        measure()

    def _begin(self) -> None:
        """Says that it is warm, and waits for the others."""
        say({"ready": True})
        if not sys.stdin.readline():
            self.stop.set()
        threading.Thread(target=self._wait_for_end_of_input, daemon=True).start()
        self._measuring = True
        self.started = time.monotonic()
        self.deadline = self.started + self.job["seconds"] if self.job["seconds"] else float("inf")

    def _wait_for_end_of_input(self) -> None:
        sys.stdin.read()
        self.stop.set()

    def _end(self) -> None:
        say(
            {
                "records": self.records,
                "bytes": self.bytes,
                "started": self.started,
                "ended": time.monotonic(),
                "failures": self.failures,
                "failure": self.failure,
                "acknowledged": [self.acknowledged.counts, self.acknowledged.greatest],
                "arrived": [self.arrived.counts, self.arrived.greatest],
            }
        )

    def _goes_on(self, sent: int) -> bool:
        now = time.monotonic()
        if now - self._reported > REPORT_SECONDS:
            self._reported = now
            say({"done": sent})
        return (
            now < self.deadline and not self.stop.is_set() and (not self.job["records"] or sent < self.job["records"])
        )

    def _producer(self) -> Producer:
        properties = {
            "acks": self.job["acks"],
            "compression.type": self.job["compression"],
            "linger.ms": self.job["linger_ms"],
            "queue.buffering.max.messages": 200_000,
            "error_cb": lambda error: None,
        }
        return self.connection.producer(properties)

    def _delivered(self, error: Any, message: Message) -> None:
        if not self._measuring:
            return
        if error is not None:
            self.failures += 1
            self.failure = error.str()
            return
        self.records += 1
        self.bytes += self.job["size"]
        self.acknowledged.add(message.latency() or 0.0)

    def _produce(self) -> None:
        producer, topic = self._producer(), self.job["topic"]
        values, keys = payloads(self.job["size"]), self.job["keys"]

        def send(number: int) -> None:
            key = b"key-%d" % (number % keys) if keys else None
            while True:
                try:
                    producer.produce(topic, values[number % _PAYLOADS], key=key, on_delivery=self._delivered)
                    return
                except BufferError:
                    producer.poll(0.05)

        for number in range(self.job["warm_up"]):
            send(number)
        producer.flush()
        self._begin()
        sent, rate = 0, self.job["rate"]
        while self._goes_on(sent):
            for _ in range(_burst(self.job, sent, time.monotonic() - self.started)):
                send(sent)
                sent += 1
                if sent % 200 == 0:
                    producer.poll(0)
            producer.poll(0.001 if rate else 0)
        while producer.flush(0.5) and not (self.stop.is_set() and time.monotonic() > self.deadline + 5):
            pass
        self._end()

    def _consumer(self, partitions: list[int], offset: int) -> Consumer:
        from confluent_kafka import TopicPartition

        consumer = self.connection.consumer(
            {
                "group.id": "millstream-bench",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "error_cb": lambda error: None,
            }
        )
        consumer.assign([TopicPartition(self.job["topic"], partition, offset) for partition in partitions])
        return consumer

    def _consume(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING

        partitions = self.job["assigned"]
        consumer = self._consumer(partitions, OFFSET_BEGINNING)
        first = consumer.consume(1, _SILENCE_SECONDS)  # connections, metadata, the first fetch
        self._begin()
        ended: set[int] = set()
        messages = first
        while True:
            for message in messages:
                if message.error() is not None:
                    ended.add(message.partition() or 0)
                else:
                    self.records += 1
                    self.bytes += len(message.value() or b"") + len(message.key() or b"")
            if not self._goes_on(self.records) or len(ended) == len(partitions):
                break
            messages = consumer.consume(1000, 0.1)
        self._end()
        consumer.close()

    def _latency(self) -> None:
        from confluent_kafka import OFFSET_END

        producer = self._producer()
        consumer = self._consumer(list(range(self.job["partitions"])), OFFSET_END)
        value = payloads(max(self.job["size"], 8))[0]
        sent = 0
        self._until_at_end(consumer)

        def exchange() -> None:
            """One record there and back."""
            nonlocal sent
            began = time.monotonic()
            mark = b"%016x" % (time.monotonic_ns())
            producer.produce(self.job["topic"], mark + value[len(mark) :], on_delivery=self._delivered)
            producer.poll(0)
            while not self.stop.is_set():
                message = consumer.poll(0.5)
                if message is not None and message.error() is None and (message.value() or b"")[: len(mark)] == mark:
                    if self._measuring:
                        self.arrived.add(time.monotonic() - began)
                    break
                if time.monotonic() - began > _SILENCE_SECONDS:
                    self.failures += 1
                    self.failure = f"a record did not arrive within {_SILENCE_SECONDS:.0f} s"
                    break
            producer.poll(0)
            sent += 1

        for _ in range(self.job["warm_up"]):
            exchange()
        producer.flush()
        self._begin()
        sent = 0
        rate = self.job["rate"]
        while self._goes_on(sent) and not self.failures:
            if rate:
                time.sleep(max(0.0, self.started + sent / rate - time.monotonic()))
            exchange()
        producer.flush(5)
        self._end()
        consumer.close()

    def _until_at_end(self, consumer: Consumer) -> None:
        """Until the consumer waits at the end of each partition: only then does it see what is sent from now on."""
        waiting = self.job["partitions"]
        deadline = time.monotonic() + _SILENCE_SECONDS
        while waiting and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            waiting -= message is not None and message.error() is not None


def _burst(job: dict[str, Any], sent: int, elapsed: float) -> int:
    """How many records to send now: as many as the rate has room for, never beyond the last one."""
    many = 1000 if not job["rate"] else max(0, min(1000, int(elapsed * job["rate"]) + 1 - sent))
    return min(many, job["records"] - sent) if job["records"] else many


def payloads(size: int) -> list[bytes]:
    """Random hex digits: text that compresses to about half."""
    return [os.urandom(size // 2 + 1).hex().encode()[:size] for _ in range(_PAYLOADS)]


def say(data: Any) -> None:
    print(json.dumps(data), flush=True)


def main(read: Callable[[], str] = sys.stdin.readline) -> None:
    """A job from standard input; a failure is said as `{"error": ...}`."""
    from millstream.cluster.errors import ClusterError

    line = read()
    if not line:
        return
    try:
        Worker(json.loads(line)).run()
    except ClusterError as error:
        say({"error": str(error), "exit_code": error.exit_code})


if __name__ == "__main__":
    main()

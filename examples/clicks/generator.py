"""Makes clicks: one for each campaign and publisher at a tick, and at full rate a tick every millisecond.

The clock decides how many ticks are due; if this process was held up, it makes the missing ones at once, and it tells
the rate that it really reached. A click's timestamp is the moment when it was made. On demand some are malformed: cut
in the middle, or from a city that is on no map. Each is counted as made when the log has acknowledged it.

    python -m clicks.generator BOOTSTRAP --seconds 20 --rate 50000 --malformed-every 10000
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Iterator

from confluent_kafka import KafkaError, Message, Producer

from clicks.click import BROWSERS, CAMPAIGNS, COUNTRIES, PLATFORMS, PUBLISHERS, Click, write_click
from example_kit import ExampleError, parent_says_stop, tell

TOPIC = "clicks"
PER_TICK = len(CAMPAIGNS) * len(PUBLISHERS)
VISITORS = 5000
MOST_TICKS = 20
"""Made at once before the log's answers are looked at, however many are due."""
TELL_SECONDS = 0.5
FLUSH_SECONDS = 60.0


def clicks(seed: int | None = None, malformed_every: int = 0) -> Iterator[list[tuple[bytes, bytes]]]:
    """Tick after tick, each as records (key, value)."""
    chance = random.Random(seed)
    visitors = [_visitor(chance) for _ in range(VISITORS)]
    keys = [(str(campaign).encode(), campaign, publisher) for campaign in CAMPAIGNS for publisher in PUBLISHERS]
    made = 0
    while True:
        now = int(time.time() * 1000)
        tick = []
        for key, campaign, publisher in keys:
            value = b'{"uuid": "%s", "campaignId": %d, "pubId": %d, "timestamp": %d, %s' % (
                _uuid(chance), campaign, publisher, now, visitors[int(chance.random() * VISITORS)],
            )  # fmt: skip
            made += 1
            if malformed_every and made % malformed_every == 0:
                value = _malformed(value, made // malformed_every)
            tick.append((key, value))
        yield tick


def _visitor(chance: random.Random) -> bytes:
    """Who clicks, from what: the end of the JSON text, written once for the many clicks of a visitor."""
    platform = chance.choice(list(PLATFORMS))
    city = chance.choice(list(COUNTRIES))
    ip = ".".join(str(chance.randrange(1, 255)) for _ in range(4))
    version = chance.choice(PLATFORMS[platform])
    click = Click("", 0, 0, 0, ip, city, COUNTRIES[city], chance.choice(BROWSERS), platform, version)
    return write_click(click).partition(b'"timestamp": 0, ')[2]


def _uuid(chance: random.Random) -> bytes:
    """A random UUID (version 4), without the detour over a UUID object."""
    digits = b"%032x" % chance.getrandbits(128)
    variant = b"89ab"[digits[16] & 3 :][:1]
    return b"-".join((digits[:8], digits[8:12], b"4" + digits[13:16], variant + digits[17:20], digits[20:]))


def _malformed(value: bytes, number: int) -> bytes:
    if number % 2:
        return value[: len(value) // 2]
    head, _, tail = value.partition(b'"city": "')
    return head + b'"city": "Atlantis"' + tail[tail.index(b'"') + 1 :]


class Generator:
    """Sends clicks to the topic at a rate, until a time or until it is told to stop."""

    def __init__(self, bootstrap: str, rate: float, malformed_every: int, seed: int | None) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "clicks-generator",
                "enable.idempotence": True,
                "linger.ms": 5,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",  # as the Java client does it
                "on_delivery": self._delivered,
            }
        )
        self._ticks = clicks(seed, malformed_every)
        self._ticks_a_second = rate / PER_TICK
        self.sent = 0
        self.made = 0
        self._failure: KafkaError | None = None

    def run(self, seconds: float, stop: threading.Event) -> None:
        started = time.monotonic()
        next_word = started
        while (elapsed := time.monotonic() - started) < seconds and not stop.is_set():
            due = int(elapsed * self._ticks_a_second) + 1 - self.sent // PER_TICK
            for _ in range(min(due, MOST_TICKS)):
                self._send(next(self._ticks))
            self._producer.poll(0)
            if self._failure is not None:
                break
            if started + elapsed >= next_word:
                next_word += TELL_SECONDS
                tell(made=self.made, seconds=elapsed)
            if due <= 0:
                next_tick = (self.sent // PER_TICK) / self._ticks_a_second
                stop.wait(min(max(0.0, next_tick - (time.monotonic() - started)), TELL_SECONDS))
        left = self._producer.flush(FLUSH_SECONDS)
        if self._failure is not None or left:
            raise ExampleError(f"clicks could not be delivered: {self._failure or f'{left} without an answer'}")
        tell(made=self.made, seconds=time.monotonic() - started, done=True)

    def _send(self, tick: list[tuple[bytes, bytes]]) -> None:
        for key, value in tick:
            while True:
                try:
                    self._producer.produce(TOPIC, value, key)
                    break
                except BufferError:
                    self._producer.poll(0.1)  # the log is slower than we are: wait for its answers
        self.sent += len(tick)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.made += 1
        else:
            self._failure = error


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes clicks.")
    parser.add_argument("bootstrap")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--malformed-every", type=int, default=0)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    stop = parent_says_stop()
    Generator(options.bootstrap, options.rate, options.malformed_every, options.seed).run(options.seconds, stop)


if __name__ == "__main__":
    main()

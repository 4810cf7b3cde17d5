"""People who are made up: they join, connect, and message one another; a few of them do what they should not.

At the end it tells how many messages of each sort it has sent, so that the result can be checked.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import uuid
from collections import Counter
from threading import Event

from confluent_kafka import Producer

from example_kit import parent_says_stop, tell
from example_kit.clients import PARTITIONER, patient
from my_connect.topics import CONNECTIONS, MESSAGES, PROFILES, pair

FIRST = (
    "ada",
    "bela",
    "cleo",
    "dan",
    "edda",
    "finn",
    "gro",
    "hugo",
    "ines",
    "jan",
    "kaya",
    "lars",
    "mia",
    "nils",
    "olga",
)
CITIES = ("Bergen", "Cork", "Gdansk", "Leiden", "Malmo", "Porto", "Trieste", "Zadar")
TEXTS = ("Coffee at four?", "Have you seen the news?", "On my way.", "See you tomorrow!", "Thank you.", "What a match!")
TICK = 0.02
CONNECT, STRANGER, NOBODY, MALFORMED, MOVE = 0.04, 0.01, 0.01, 0.005, 0.02
"""How often, in place of a message between two who are connected."""
SECONDS = 30.0


class People:
    """All of them, in one process."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self._producer = Producer({**patient(bootstrap), "linger.ms": 5, "partitioner": PARTITIONER})
        self._names = [f"{FIRST[number % len(FIRST)]}.{number}" for number in range(count)]
        self._connected: list[tuple[str, str]] = []
        self._pairs: set[str] = set()
        self._parted: list[tuple[str, str]] = []
        self.sent: Counter[str] = Counter()

    def join(self) -> None:
        for name in self._names:
            self._profile(name)
            self._connect(name, random.choice(self._names))
        for one, other in random.sample(self._connected, max(len(self._connected) // 10, 1)):
            self._part(one, other)
        self._producer.flush(SECONDS)

    def live(self, rate: float, seconds: float, stop: Event) -> None:
        begun = told = time.monotonic()
        actions = 0
        while (now := time.monotonic()) - begun < seconds and not stop.is_set():
            due = int((now - begun) * rate) - actions
            self._act(due)
            actions += due
            if now - told > 0.5:
                tell(sent=self.sent.total())
                told = now
            time.sleep(TICK)
        self._producer.flush(SECONDS)

    def _act(self, times: int) -> None:
        dice = [random.random() for _ in range(times)]
        for _ in range(sum(die < CONNECT for die in dice)):
            self._connect(*random.choices(self._names, k=2))
        self._producer.flush(SECONDS)  # whoever connects waits until that is done before the first message
        bounds = (CONNECT, CONNECT + STRANGER, CONNECT + STRANGER + NOBODY, CONNECT + STRANGER + NOBODY + MALFORMED)
        for die in dice:
            if die < bounds[0]:
                continue
            if die < bounds[1]:
                self._message(*random.choice(self._parted), sort="not connected")
            elif die < bounds[2]:
                self._message(random.choice(self._names), "nobody", sort="no such person")
            elif die < bounds[3]:
                self._producer.produce(MESSAGES, key="nobody", value=b'{"id": "half a mess')
                self.sent["malformed"] += 1
            elif die < bounds[3] + MOVE:
                self._profile(random.choice(self._names))
            else:
                ends = random.choice(self._connected)
                self._message(*random.sample(ends, 2), sort="delivered")

    def _profile(self, name: str) -> None:
        self._producer.produce(PROFILES, key=name, value=json.dumps({"name": name, "city": random.choice(CITIES)}))

    def _connect(self, one: str, other: str) -> None:
        if one == other or pair(one, other) in self._pairs:
            return
        self._pairs.add(pair(one, other))
        self._connected.append((one, other))
        self._connection(one, other, connected=True)

    def _part(self, one: str, other: str) -> None:
        """Before a word was said."""
        self._connected.remove((one, other))
        self._parted.append((one, other))
        self._connection(one, other, connected=False)

    def _connection(self, one: str, other: str, *, connected: bool) -> None:
        value = {"people": [one, other], "connected": connected}
        self._producer.produce(CONNECTIONS, key=pair(one, other), value=json.dumps(value))

    def _message(self, sender: str, receiver: str, *, sort: str) -> None:
        message = {
            "id": uuid.uuid4().hex,
            "from": sender,
            "to": receiver,
            "text": random.choice(TEXTS),
            "sent_at": time.time(),
        }
        self._producer.produce(MESSAGES, key=receiver, value=json.dumps(message))
        self._producer.poll(0)
        self.sent[sort] += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--people", required=True, type=int)
    parser.add_argument("--rate", required=True, type=float)
    parser.add_argument("--seconds", required=True, type=float)
    options = parser.parse_args()
    stop = parent_says_stop()
    people = People(options.bootstrap, options.people)
    people.join()
    people.live(options.rate, options.seconds, stop)
    tell(sent=people.sent.total(), sorts=people.sent)


if __name__ == "__main__":
    main()

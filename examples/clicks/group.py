"""A consumer group as its owner sees it: the processes that are its members, and what they have told."""

from __future__ import annotations

import queue
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clicks.member import STORE_VARIABLE, TELL_SECONDS
from clicks.stores import title_of
from example_kit import Child

RATE_SECONDS = 3.0
"""Rates are means over so long."""


class Rate:
    """How many a second, of late."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, count: int) -> None:
        self._seen.append((now, count))

    def at(self, now: float) -> float:
        while self._seen and self._seen[0][0] < now - RATE_SECONDS:
            self._seen.popleft()
        return sum(count for _, count in self._seen) / RATE_SECONDS


class Member:
    """A member's process, and what it has told."""

    def __init__(self, name: str, child: Child) -> None:
        self.name = name
        self.child = child
        self.saved = 0
        self.rate = Rate()
        self.away = False
        self.killed = False

    def kill(self) -> None:
        """SIGKILL: it can neither commit nor say good-bye."""
        self.killed = True
        self.child.kill()


class Group:
    """A group of members that save clicks in the same store. Everything happens in the thread that calls `listen`."""

    def __init__(self, name: str, store: str, bootstrap: str, out: Path, clock: Callable[[], float]) -> None:
        self.name = name
        self.store = store
        self.members: list[Member] = []
        self.saved = 0
        self.bad = 0
        self.latencies: Counter[int] = Counter()
        self._first_save: float | None = None
        self._last_save = 0.0
        self._bootstrap = bootstrap
        self._out = out
        self._clock = clock
        self._told: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._started = 0

    @property
    def seconds(self) -> float:
        """How long it has been at work, from its first save to its last."""
        return self._last_save - (self._first_save or 0.0)

    def start_member(self, slow: float = 0.0) -> Member:
        self._started += 1
        name = f"{self.name.removeprefix('kc-clicks-')}-{self._started}"
        child = Child(
            "clicks.member",
            [self._bootstrap, self.name, name, "--slow", str(slow)],
            hear=lambda event: self._told.put((name, event)),
            log=self._out / f"{name}.log",
            environment={STORE_VARIABLE: self.store},
        )
        member = Member(name, child)
        self.members.append(member)
        return member

    def running(self) -> list[Member]:
        return [member for member in self.members if member.child.is_running()]

    def stop(self) -> None:
        running = self.running()
        for member in running:
            member.child.ask_to_stop()
        for member in running:
            member.child.wait()

    def kill(self) -> None:
        for member in self.running():
            member.kill()

    def listen(self) -> list[str]:
        """Takes in what the members have told, and returns what is worth a sentence."""
        sentences = []
        while not self._told.empty():
            name, event = self._told.get()
            (member,) = [item for item in self.members if item.name == name]
            sentences += self._take_in(member, event)
        return sentences

    def _take_in(self, member: Member, event: dict[str, Any]) -> list[str]:
        kind = event["event"]
        if kind == "saved":
            member.saved += event["clicks"]
            member.rate.add(self._clock(), event["clicks"])
            self.saved += event["clicks"]
            if event["clicks"]:
                self._first_save = self._first_save or self._clock() - TELL_SECONDS
                self._last_save = self._clock()
            self.bad += event["bad"]
            self.latencies.update({int(ms): count for ms, count in event["latencies"].items()})
            return []
        if kind == "away":
            member.away = True
            holds = f"holds {event['waiting']:,} clicks and " if event["waiting"] else ""
            return [f"{member.name}: {title_of(self.store)} is away ({event['reason']}); it {holds}tries again"]
        if kind == "back":
            member.away = False
            then = f", the {event['saved']:,} clicks it held are saved" if event["saved"] else ""
            return [f"{member.name}: {title_of(self.store)} is back after {event['seconds']:.1f} s{then}"]
        if kind == "trouble":
            return [f"{member.name} {event['reason']}"]
        words = {"assigned": "gets", "revoked": "gives back"}
        if not event["partitions"]:
            return []
        return [f"{member.name} {words[kind]} {_partitions(event['partitions'])}"]


def percentile(latencies: Counter[int], share: float) -> int | None:
    """The latency in milliseconds that this share of the clicks does not exceed."""
    left = share * latencies.total()
    for milliseconds in sorted(latencies):
        left -= latencies[milliseconds]
        if left <= 0:
            return milliseconds
    return None


def _partitions(numbers: list[int]) -> str:
    word = "partition" if len(numbers) == 1 else "partitions"
    return f"{word} {', '.join(map(str, sorted(numbers)))}"

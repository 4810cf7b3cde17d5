"""The stage on which the clicks are played: topic, generator, groups, watch, stores, and one thread that runs it all.

Generator and members are processes of their own. `play` is where time passes: it takes in what they tell, says what is
worth a sentence, and draws the picture, until a condition holds. Whatever happens, nothing outlives the stage.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clicks import show
from clicks.generator import TOPIC
from clicks.group import Group, Member
from clicks.member import DEAD_LETTERS
from clicks.outages import Outages, Places
from clicks.plot import draw
from clicks.watch import GroupSample, Watch
from example_kit import Child, ExampleError, Run, create_topic

PARTITIONS = 6
PERSISTOR = "kc-clicks-persistor"
MYSQL = "kc-clicks-mysql"
LOOK_SECONDS = 0.1
DRAIN_SECONDS = 300.0


class Stage:
    """Everything that runs, and what is known of it."""

    def __init__(self, run: Run, places: Places) -> None:
        self.run = run
        self.places = places
        self.groups: dict[str, Group] = {}
        self.made = 0
        self.made_seconds = 0.0
        self.generator_started = False
        self.generator_done = False
        self.events: list[tuple[float, str]] = []
        self._began = time.monotonic()
        self.watch = Watch(run.bootstrap, TOPIC, PARTITIONS, self.clock)
        self.outages = Outages(places)
        self._generator: Child | None = None
        self._told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.seconds = 0.0
        self.picture = show.Picture(self)

    def clock(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    # --- who plays ---

    def start_generator(self, seconds: float, rate: float, malformed_every: int = 0, seed: int | None = None) -> None:
        self.seconds = seconds
        options = {"seconds": seconds, "rate": rate, "malformed-every": malformed_every}
        if seed is not None:
            options["seed"] = seed
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        log = self.run.out / "generator.log"
        self._generator = Child("clicks.generator", [self.run.bootstrap, *arguments], hear=self._told.put, log=log)

    def start_group(self, name: str, members: int, slow: float = 0.0) -> Group:
        store = self.places.persistor if name == PERSISTOR else self.places.mysql
        group = Group(name, store, self.run.bootstrap, self.run.out, self.clock)
        self.groups[name] = group
        self.watch.add(name)
        for _ in range(members):
            group.start_member(slow)
        return group

    def event(self, sentence: str, short: str = "") -> None:
        """Something that is said now and marked in the plot."""
        self.events.append((self.clock(), short or sentence))
        self.run.say(sentence, style="bold")

    # --- time passes ---

    def play(self, until: Callable[[], bool], most: float = DRAIN_SECONDS) -> bool:
        """Lets it all go on until the condition holds (true), or so many seconds have passed (false)."""
        deadline = time.monotonic() + most
        while not until():
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_SECONDS)
            self._listen()
            self.picture.update()
        return True

    def play_for(self, seconds: float) -> None:
        self.play(lambda: False, seconds)

    def play_out(self) -> None:
        """Until the generator has ended and every group has committed all there is."""
        self.play(lambda: self.generator_done, self.seconds + DRAIN_SECONDS)
        done = self.clock()
        if not self.play(lambda: all(self.drained(name, done) for name in self.groups)):
            lags = {name: sample.total_lag for name in self.groups if (sample := self.watch.last(name))}
            raise ExampleError(f"the groups did not catch up within {DRAIN_SECONDS:.0f} s: {lags}")

    def drained(self, group: str, since: float) -> bool:
        """Whether the group has no lag, seen after that moment."""
        sample = self.watch.last(group)
        return sample is not None and self.watch.samples[-1].time > since and sample.total_lag == 0

    def settled(self, group: str) -> bool:
        """Whether the group's members have joined and share all partitions."""
        sample = self.watch.last(group)
        joined = sample is not None and set(sample.owned) == {member.name for member in self.groups[group].running()}
        return sample is not None and joined and sum(map(len, sample.owned.values())) == PARTITIONS

    def others(self) -> list[tuple[str, GroupSample]]:
        """Groups that are watched but are not ours to start: those of pipelines."""
        last = self.watch.samples[-1].groups if self.watch.samples else {}
        return [(name, sample) for name, sample in last.items() if name not in self.groups]

    def lag(self, group: str) -> int:
        sample = self.watch.last(group)
        return sample.total_lag if sample is not None else 0

    def _listen(self) -> None:
        while not self._told.empty():
            event = self._told.get()
            self.generator_started = True
            self.made, self.made_seconds = event["made"], event["seconds"]
            self.generator_done = event.get("done", False)
        if self._generator is not None and not self._generator.is_running() and not self.generator_done:
            self._generator.wait()  # says why, if it failed
        for group in self.groups.values():
            for sentence in group.listen():
                self.run.say(f"  {sentence}")
            for member in group.members:
                self._look_after(member)

    def _look_after(self, member: Member) -> None:
        """A member that has ended though nobody has killed it ends the play."""
        if not member.child.is_running() and not member.killed:
            member.child.wait()
            raise ExampleError(f"{member.name} ended by itself")

    # --- the end ---

    def stop(self) -> None:
        """In order: the members commit and leave their groups, and the picture is over."""
        for group in self.groups.values():
            group.stop()
            group.listen()
        self.watch.stop()
        self.picture.close()

    def end(self) -> None:
        """At once, whatever state things are in."""
        self.watch.stop()
        for group in self.groups.values():
            group.kill()
        if self._generator is not None:
            self._generator.kill()
        self.outages.end()

    def draw(self, title: str, file: str) -> Path:
        return draw(title, self.watch.samples, self.events, PARTITIONS, self.run.out / file)


@contextmanager
def stage(run: Run) -> Iterator[Stage]:
    """An empty stage, with topics and stores on it."""
    create_topic(run.bootstrap, TOPIC, partitions=PARTITIONS, fresh=True)
    create_topic(run.bootstrap, DEAD_LETTERS, fresh=True)
    with ExitStack() as stack:
        places = stack.enter_context(Places.real(run)) if run.options.real else Places.embedded(run.out / "stores")
        found = Stage(run, places)
        stack.callback(found.end)
        found.watch.start()
        stack.callback(found.picture.close)
        found.picture.open()
        yield found

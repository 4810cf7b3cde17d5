"""Three experiments with consumer groups, and one with the stores. Each tells what happens while it happens.

They all end in the same way: the generator stops, the groups read what is left, and then every click in the topic is
looked for in every store. The plot shows the lag of each group, and which member owned how many partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clicks.check import Comparison, clicks_in, compare, dead_letters, tell_letters
from clicks.group import Group, Member
from clicks.member import SESSION_SECONDS
from clicks.stage import MYSQL, PARTITIONS, PERSISTOR, Stage
from clicks.stores import title_of
from example_kit import ExampleError, Run

JOIN_SECONDS = 60.0
SOON_SECONDS = 0.5
"""A lag of no more clicks than are made in this time is as good as none, while more come in."""


class Settings(NamedTuple):
    """What an experiment may be told."""

    seconds: float
    rate: float
    malformed_every: int
    away: float
    seed: int | None


def new_group(stage: Stage, settings: Settings) -> str:
    """A group that was never there before goes live while another is at work."""
    _begin(stage, settings, {PERSISTOR: 2})
    stage.play_for(settings.seconds * 0.4)
    before = len(stage.watch.samples)
    newcomer = stage.start_group(MYSQL, 2)
    behind = stage.made
    stage.event(
        f"{MYSQL} goes live. It has never committed anything, so it starts at the earliest offset: "
        f"{behind:,} clicks are waiting for it",
        f"{MYSQL} goes live, {behind:,} clicks behind",
    )
    went_live = stage.clock()
    if not stage.play(lambda: newcomer.saved > 0, JOIN_SECONDS):
        raise ExampleError(f"{MYSQL} has saved nothing after {JOIN_SECONDS:.0f} s")
    joined = stage.clock()
    stage.event(f"its members have joined and read after {joined - went_live:.1f} s", "its first clicks are saved")
    if stage.play(lambda: _caught_up(stage, MYSQL, settings), settings.seconds):
        took = stage.clock() - joined
        stage.event(f"{MYSQL} has caught up, {took:.1f} s after its first save", f"it has caught up in {took:.1f} s")
    worst = max(sample.groups[PERSISTOR].total_lag for sample in stage.watch.samples[before:])
    stage.play_out()
    stage.run.say(
        f"{PERSISTOR} did not care: meanwhile its lag was never more than {worst:,}. Each group has its own offsets"
    )
    return "A new group goes live"


def member_down(stage: Stage, settings: Settings) -> str:
    """A member of a group is killed; the others take over its partitions; then it is replaced."""
    group = _begin(stage, settings, {PERSISTOR: 3})[PERSISTOR]
    stage.play_for(settings.seconds * 0.25)
    victim = group.members[1]
    lost = _owned(stage, group, victim)
    victim.kill()
    killed = stage.clock()
    stage.event(
        f"{victim.name}, which owns {_partitions(lost)}, is killed (kill -9): it can neither commit nor say good-bye. "
        f"Its partitions stay with it until the coordinator has missed its heartbeats for {SESSION_SECONDS} s",
        f"{victim.name} is killed; for {SESSION_SECONDS} s its partitions stay with it, and nobody reads them",
    )
    if not stage.play(lambda: victim.name not in _owners(stage, group), JOIN_SECONDS):
        raise ExampleError(f"{victim.name} is still a member of {group.name} after {JOIN_SECONDS:.0f} s")
    since = [sample.groups[group.name] for sample in stage.watch.samples if sample.time >= killed]
    waiting = max(sum(sample.lag[number] for number in lost) for sample in since)
    stage.event(
        f"{stage.clock() - killed:.1f} s later the coordinator gives {_partitions(lost)} to the others; "
        f"{waiting:,} clicks have piled up there, and what {victim.name} had saved but not committed comes again",
        f"its partitions go to the others, {waiting:,} clicks behind",
    )
    if stage.play(lambda: _caught_up(stage, group.name, settings), settings.seconds):
        stage.event(f"{group.name} has caught up, with a member less", "the group has caught up, with a member less")
    stage.play_for(settings.seconds * 0.1)
    newcomer = group.start_member()
    stage.event(f"{newcomer.name} starts in its place", f"{newcomer.name} starts in its place")
    if not stage.play(lambda: bool(_owned(stage, group, newcomer)), JOIN_SECONDS):
        raise ExampleError(f"{newcomer.name} got no partitions within {JOIN_SECONDS:.0f} s")
    stage.event(
        f"the group is whole again: {newcomer.name} owns {_partitions(_owned(stage, group, newcomer))}",
        f"the group is whole again, {newcomer.name} has its share",
    )
    stage.play_out()
    return "A member of a group goes down"


def fast_and_slow(stage: Stage, settings: Settings) -> str:
    """One group is fast and the other slow; then the slow one gets more members."""
    capacity = settings.rate / 2
    fast, slow = PERSISTOR, MYSQL
    groups = _begin(stage, settings, {fast: 2, slow: 1}, slow={slow: 1 / capacity})
    stage.run.say(f"the one member of {slow} manages {capacity:,.0f} clicks a second at most: half of what is made")
    stage.play_for(settings.seconds * 0.5)
    stage.event(
        f"{slow} is {stage.lag(slow):,} clicks behind, {fast} {stage.lag(fast):,}: nobody waits for anybody. "
        f"{slow} gets two more members, just as slow as the first",
        f"{slow}, {stage.lag(slow):,} behind, gets two more members",
    )
    group = groups[slow]
    for _ in range(2):
        group.start_member(1 / capacity)
    if stage.play(lambda: all(_owned(stage, group, member) for member in group.members), JOIN_SECONDS):
        stage.event(f"the three members of {slow} share the {PARTITIONS} partitions", "they share the partitions")
    stage.play(lambda: stage.generator_done, settings.seconds * 2)
    stage.event(f"the generator has stopped; {slow} is {stage.lag(slow):,} clicks behind", "the generator has stopped")
    stage.play_out()
    stage.event(f"{slow} has caught up: slow, but nothing is lost", f"{slow} has caught up")
    return "One group is fast, the other slow"


def store_away(stage: Stage, settings: Settings) -> str:
    """Both stores go away for a while, one after the other."""
    groups = _begin(stage, settings, {PERSISTOR: 2, MYSQL: 2})
    stage.play_for(settings.seconds * 0.2)
    stores = [groups[PERSISTOR].store, groups[MYSQL].store]
    for store in stores:
        what = stage.outages.begin(store)
        stage.event(f"{title_of(store)} goes away for {settings.away:g} s: {what}", f"{title_of(store)} goes away")
        stage.play_for(settings.away * 0.2)
    stage.play_for(settings.away * 0.6)
    for store in stores:
        stage.outages.finish(store)
        stage.event(f"{title_of(store)} is there again", f"{title_of(store)} is back")
        stage.play_for(settings.away * 0.2)
    stage.play_out()
    return f"Both stores are away for {settings.away:g} s"


EXPERIMENTS: dict[str, Callable[[Stage, Settings], str]] = {
    "new-group": new_group,
    "member-down": member_down,
    "fast-and-slow": fast_and_slow,
    "store-away": store_away,
}


def experiment(name: str, stage: Stage, settings: Settings) -> dict[str, Any]:
    """Plays it to its end, checks every row, draws the plot; the report."""
    title = EXPERIMENTS[name](stage, settings)
    stage.stop()
    plot = stage.draw(title, f"{name}.png")
    stage.run.say("comparing every click in the topic with every row in the stores")
    clicks, malformed = clicks_in(stage.run.bootstrap)
    letters = dead_letters(stage.run.bootstrap)
    tell_letters(stage.run, letters)
    report: dict[str, Any] = {
        "experiment": name,
        "clicks_made": stage.made,
        "made_a_second": round(stage.made / stage.made_seconds),
        "malformed": malformed,
    }
    for group in stage.groups.values():
        found = compare(clicks, group.store)
        store = {"store": title_of(group.store), "dead_letters": len(letters[group.name])}
        report[group.name] = {**store, **found._asdict()}
        tell_comparison(stage.run, title_of(group.store), found, len(clicks))
    report["plot"] = str(plot)
    return report


def tell_comparison(run: Run, store: str, found: Comparison, clicks: int) -> None:
    if found.exactly_once:
        run.say(f"{store} has every one of the {clicks:,} clicks exactly once", "green")
    else:
        wrong = ", ".join(f"{value:,} {name}" for name, value in found._asdict().items() if name != "saved" and value)
        run.say(f"{store} has not every one of the {clicks:,} clicks exactly once: {wrong}", "bold red")


# --- what the experiments share ---


def _begin(
    stage: Stage, settings: Settings, groups: dict[str, int], slow: dict[str, float] | None = None
) -> dict[str, Group]:
    """Groups with their members, and when these have their partitions the generator."""
    begun = {name: stage.start_group(name, members, (slow or {}).get(name, 0.0)) for name, members in groups.items()}
    for name, members in groups.items():
        stage.run.say(f"{name} starts with {members} member{'s' if members > 1 else ''}")
    if not stage.play(lambda: all(map(stage.settled, groups)), JOIN_SECONDS):
        raise ExampleError(f"the groups have not got their partitions within {JOIN_SECONDS:.0f} s")
    stage.start_generator(settings.seconds, settings.rate, settings.malformed_every, settings.seed)
    stage.play(lambda: stage.generator_started, JOIN_SECONDS)
    stage.event(f"the generator makes {settings.rate:,.0f} clicks a second", "the generator starts")
    return begun


def _owners(stage: Stage, group: Group) -> dict[str, tuple[int, ...]]:
    sample = stage.watch.last(group.name)
    return dict(sample.owned) if sample is not None else {}


def _owned(stage: Stage, group: Group, member: Member) -> tuple[int, ...]:
    return _owners(stage, group).get(member.name, ())


def _caught_up(stage: Stage, group: str, settings: Settings) -> bool:
    return stage.lag(group) <= settings.rate * SOON_SECONDS


def _partitions(numbers: tuple[int, ...]) -> str:
    word = "partition" if len(numbers) == 1 else "partitions"
    return f"{word} {' and '.join(map(str, numbers)) or 'none'}"

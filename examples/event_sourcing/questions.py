"""Questions to the log. A new one needs no change to the bank: it is put to all that ever happened, from offset 0."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator

from event_sourcing.accounts import SIGNS, Event
from event_sourcing.store import EVENTS
from example_kit.reading import read_topic


def events(bootstrap: str) -> Iterator[Event]:
    """Every event, in order for each account."""
    for record in read_topic(bootstrap, EVENTS):
        yield json.loads(record.value() or b"")


def turnover(bootstrap: str) -> dict[str, int]:
    """Cents by kind of event: what somebody wanted to know from the beginning."""
    found: Counter[str] = Counter()
    for event in events(bootstrap):
        found[event["kind"]] += event["cents"]
    return dict(found)


def lowest_balances(bootstrap: str) -> dict[str, int]:
    """How close to zero each account has ever been since its first deposit: asked much later, by somebody else."""
    balances: dict[str, int] = defaultdict(int)
    lowest: dict[str, int] = {}
    for event in events(bootstrap):
        name = event["account"]
        balances[name] += SIGNS[event["kind"]] * event["cents"]
        if event["kind"] != "opened":
            lowest[name] = min(lowest.get(name, balances[name]), balances[name])
    return lowest


def broken_rules(bootstrap: str) -> list[str]:
    """What must never be, looked for in all events. Empty if all is well."""
    broken: list[str] = []
    versions: dict[str, int] = defaultdict(int)
    balances: dict[str, int] = defaultdict(int)
    commands: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for event in events(bootstrap):
        name = event["account"]
        if event["version"] != versions[name] + 1:
            broken.append(f"{name}: version {event['version']} after {versions[name]}")
        versions[name] = event["version"]
        balances[name] += SIGNS[event["kind"]] * event["cents"]
        if balances[name] < 0:
            broken.append(f"{name}: balance {balances[name]}")
        commands[event["command"]] += 1
        totals[event["kind"]] += event["cents"]
    broken += [f"command {command} was carried out {times} times" for command, times in commands.items() if times > 1]
    on_the_way = totals["sent"] - totals["received"] - totals["returned"]
    if on_the_way < 0:
        broken.append(f"{-on_the_way} cents arrived that nobody sent")
    if sum(balances.values()) + on_the_way != totals["deposited"] - totals["withdrawn"]:
        broken.append("the balances and the money on its way are not what was paid in and not paid out")
    return broken


def money_on_the_way(bootstrap: str) -> int:
    found = turnover(bootstrap)
    return found.get("sent", 0) - found.get("received", 0) - found.get("returned", 0)

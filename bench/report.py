"""What came out, for people (`docs/performance.md`) and for machines (JSON)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.compare import Outcome, Series, number
from bench.growth import Curves, Point
from bench.rows import MORE_ROUNDS

ONE, OTHER = "Millstream", "Apache Kafka"


class Results(NamedTuple):
    """All of a run."""

    date: str
    commit: str
    machine: str
    rounds: int
    versions: dict[str, str]
    series: list[Series]
    failures: dict[str, dict[str, str]]
    missing: dict[str, str]
    """Peers that could not be had, and why."""
    growth: Curves

    @property
    def goals(self) -> tuple[int, int]:
        """How many are met, of how many."""
        met = [line.is_met(ONE, OTHER) for line in self.series if line.is_met(ONE, OTHER) is not None]
        return sum(map(bool, met)), len(met)


def machine() -> str:
    """What it ran on, in words."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB of memory, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}{' of the system' if sys.base_prefix == '/usr' else ''}; "
        "servers and clients share it"
    )


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = "" if not git("status", "--porcelain", "--", "src") else " with changes"
    return git("rev-parse", "--short", "HEAD") + changed


def today() -> str:
    return time.strftime("%Y-%m-%d")


# --- for machines


def save(results: Results, file: Path) -> None:
    data: dict[str, Any] = {
        **results._asdict(),
        "series": [line._asdict() for line in results.series],
        "growth": {
            over: {system: [point._asdict() for point in points] for system, points in systems.items()}
            for over, systems in results.growth.items()
        },
    }
    file.write_text(json.dumps(data, indent=1) + "\n")


def load(file: Path) -> Results:
    data = json.loads(file.read_text())
    data["series"] = [Series(**line) for line in data["series"]]
    data["growth"] = {
        over: {system: [Point(**point) for point in points] for system, points in systems.items()}
        for over, systems in data["growth"].items()
    }
    return Results(**data)


def check(outcome: Outcome, must: Sequence[str], rounds: int) -> None:
    """That the results can be what they say: each figure measured in each round, and more than nothing."""
    for line in outcome.series:
        for system in must:
            values = line.values.get(system, [])
            if len(values) < rounds:
                raise AssertionError(f"{line.row}: {system} has {len(values)} of {rounds} rounds")
            if any(value < 0 or (value == 0 and line.unit != "s/GB") for value in values):
                raise AssertionError(f"{line.row}: {line.figure} of {system} is {values}")


# --- for people

PAGE = """# How fast it is

Written by `make bench` on {date}, commit {commit}. {machine}.
{versions}.

Each row ran {rounds} times for each server, short ones up to {most} times, in turns, after one round that does not
count (on Spark four). The ratio is the median of the rounds' ratios, Millstream / Apache Kafka; behind it the
smallest and the largest. Both servers have their default settings (Apache Kafka: heap of 1 GB and the Java options of
its own start script; both: no delay for the first rebalance of a group, and deleted topics go at once). The clients
are the same for both, on native code. Server CPU is what the server's process used for a gigabyte of records.
[bench/README.md](../bench/README.md) says what each row does and how to run it.

**{met} of {count} goals are met.**{missed}

![The ratios](images/performance.png)

{tables}

## Growth

Ready-made requests of ten records of 100 B, the same number at each size; ten connections over 1 to 1,000 partitions,
and 1 to 1,000 connections with one request under way on each.

![Growth](images/performance-growth.png)

{growth}

## Where it goes, and what is left

By `perf` and py-spy under the same loads:

- Small requests that come one at a time (Java's producer, Spark's sink): two thirds of the server's CPU are Python, a
  third is the kernel. A request takes 16 µs of Python among many, and twice that when the server was asleep before it
  and others had its core. Less is to be had by doing less for a request; compiled by mypyc it takes a sixth less.
- Large requests and fetches: more than half is the kernel, which copies, sends over loopback and wakes the peer. In a
  fetch of a thousand partitions one that has nothing new takes 1.3 µs.
- Consumers are bound by the client here: it and the server share two cores, and what the server does not need the
  client has. Consumers that only count the records, in C, are bound by the kernel: ten of them took 3.4 million records
  a second from Millstream and 3.2 from an Apache Kafka that had run for a while, for 0.18 and 0.26 s of the server's
  CPU a gigabyte. What is left to either is to send and to wake the peer.
- Latency at 1,000 records a second is the clients' too: of a quarter of a millisecond the server has some 100 µs, from
  the produce request's arrival to the fetch response's departure, twice what the same takes when the core was not
  asleep before; kfake, in memory, is the floor. Apache Kafka's p99 at this rate is between 0.5 and 2 ms from run to
  run, by how far its compiler has come and how many pauses a round has, and the ratio accordingly 0.2 to 0.8; at 5,000
  records a second, where the server counts for more, it is 0.1 to 0.2.
- All this is one thread. With one request under way on each of a hundred connections Apache Kafka answers on all cores,
  up to twice as many a second, at about the same CPU for each.

## Beside others

The same rows on other servers that speak the protocol, where they can do them, and for the raw requests a plain loop
that receives bytes, writes them to a file and answers: what no server in Python can beat. Medians.

{peers}
"""


def write_page(results: Results, page: Path) -> None:
    met, count = results.goals
    page.write_text(
        PAGE.format(
            date=results.date,
            commit=results.commit,
            machine=results.machine,
            versions=", ".join(f"{name} {version}".strip() for name, version in results.versions.items()),
            rounds=results.rounds,
            most=MORE_ROUNDS * results.rounds,
            met=met,
            count=count,
            missed=_missed(results.series),
            tables=_table(results.series),
            growth=_growth(results.growth),
            peers=_peers(results),
        )
    )


def _missed(series: Sequence[Series]) -> str:
    lines = [
        f"{line.row}: {line.figure} {line.ratio(ONE, OTHER):.2f} (goal {_goal(line)})"
        for line in series
        if line.is_met(ONE, OTHER) is False
    ]
    return "" if not lines else " Missed:\n\n" + "\n".join(f"- {line}" for line in lines)


def _goal(line: Series) -> str:
    return f"{'≥' if line.better == 'higher' else '≤'} {line.goal:g}"


def _table(series: Sequence[Series]) -> str:
    rows = ["| row | figure | Millstream | Apache Kafka | ratio | goal |", "|---|---|---:|---:|---:|---|"]
    last = ""
    for line in series:
        ratio = line.ratio(ONE, OTHER)
        if ratio is None:
            continue
        goal = ""
        if line.goal is not None:
            goal = f"{_goal(line)} {'✓' if line.is_met(ONE, OTHER) else '**missed**'}"
        rows.append(
            f"| {line.row if line.row != last else ''} | {line.figure}, {line.unit} | {number(line.median(ONE))} "
            f"| {number(line.median(OTHER))} | **{ratio:.2f}** {line.spread(ONE, OTHER)} | {goal} |"
        )
        last = line.row
    return "\n".join(rows)


def _growth(curves: Curves) -> str:
    rows = ["| | | requests/s | CPU, µs a request | peak memory, MB |", "|---|---|---:|---:|---:|"]
    for over, systems in curves.items():
        for system, points in systems.items():
            rows += [
                f"| {point.size:,} {over} | {system} | {number(point.requests_per_second)} "
                f"| {number(point.cpu_microseconds)} | {number(point.memory)} |"
                for point in points
            ]
    return "\n".join(rows)


def _peers(results: Results) -> str:
    names = [name for name in results.versions if name not in (ONE, OTHER)]
    shown = [ONE, OTHER, *names]
    rows = [f"| row | {' | '.join(shown)} |", "|---|" + "---:|" * len(shown)]
    for line in results.series:
        if line.figure in ("server CPU", "peak memory") or not any(name in line.values for name in names):
            continue
        cells = [number(line.median(name)) if line.values.get(name) else "-" for name in shown]
        rows.append(f"| {line.row}: {line.figure}, {line.unit} | {' | '.join(cells)} |")
    notes = [f"- {name}: {why}" for name, why in results.missing.items()]
    notes += [
        f"- {row}: {system} could not: {why}"
        for row, systems in results.failures.items()
        for system, why in systems.items()
    ]
    return "\n".join(rows) + ("\n\n" + "\n".join(notes) if notes else "")

"""Row after row, the servers in turns: A B A B ..., one round that does not count, then those that do: five, or more
where that takes a few seconds only.

What a peer cannot do is a sentence in the results; what one of the two cannot do ends the benchmark.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench import loads
from bench.rows import COSTS, CPU, MB, MEMORY, MORE_ROUNDS, Figure, Measured, Row, Scale
from bench.systems import System

Say = Callable[[str], None]
GB = 1_000 * MB


class Series(NamedTuple):
    """One figure of one row: what each server had, round after round."""

    row: str
    figure: str
    unit: str
    better: str
    goal: float | None
    values: dict[str, list[float]]

    def median(self, system: str) -> float:
        return statistics.median(self.values[system])

    def ratios(self, one: str, other: str) -> list[float]:
        """Round by round; the two of a round ran one after the other."""
        return [a / b for a, b in zip(self.values[one], self.values[other], strict=True) if b]

    def ratio(self, one: str, other: str) -> float | None:
        ratios = self.ratios(one, other)
        return statistics.median(ratios) if ratios else None

    def spread(self, one: str, other: str) -> str:
        """The least and the greatest of the rounds' ratios."""
        ratios = self.ratios(one, other)
        return f"({min(ratios):.2f}-{max(ratios):.2f})" if ratios else ""

    def is_met(self, one: str, other: str) -> bool | None:
        ratio = self.ratio(one, other)
        if ratio is None or self.goal is None:
            return None
        return ratio >= self.goal if self.better == "higher" else ratio <= self.goal


class Outcome(NamedTuple):
    series: list[Series]
    failures: dict[str, dict[str, str]]
    """Row, then server: why there is nothing."""


def compare(rows: Sequence[Row], systems: Sequence[System], must: set[str], scale: Scale, say: Say) -> Outcome:
    """`must` names the servers that have to manage every row."""
    outcome = Outcome([], {})
    for number, row in enumerate(rows, 1):
        say(f"[{number}/{len(rows)}] {row.name}")
        asked = [system for system in systems if row.for_peers or system.name in must]
        failures: dict[str, str] = {}
        found = _measure(row, asked, must, scale, failures)
        if failures:
            outcome.failures[row.name] = failures
        series = _series(row, found) if found else []
        outcome.series.extend(series)
        for line in series:
            say("    " + in_words(line))
        for name, why in failures.items():
            say(f"    {name} cannot: {why}")
    return outcome


def _measure(
    row: Row, systems: Sequence[System], must: set[str], scale: Scale, failures: dict[str, str]
) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {system.name: [] for system in systems}
    prepared: dict[str, Any] = {}
    for system in systems:
        with _excused(system, must, failures):
            prepared[system.name] = row.prepare(system, scale)
    warm_up = 0 if row.is_of_its_own else min(row.warm_up, scale.rounds - 1)
    begin, number = time.monotonic(), 0
    while number < warm_up + scale.rounds or (
        number < warm_up + MORE_ROUNDS * scale.rounds and time.monotonic() - begin < row.patience * scale.row_seconds
    ):
        for system in systems:
            if system.name not in failures:
                with _excused(system, must, failures):
                    measured = _watched(row, system, scale, prepared[system.name])
                    if number >= warm_up:
                        found[system.name].append(measured)
        number += 1
    for system in systems:
        if system.name not in failures:
            with _excused(system, must, failures):
                row.clean_up(system, prepared[system.name])
    return {name: runs for name, runs in found.items() if name not in failures}


@contextmanager
def _excused(system: System, must: set[str], failures: dict[str, str]) -> Iterator[None]:
    """Whoever need not manage may fail; one that ended over it is started again."""
    try:
        yield
    except Exception as error:
        if system.name in must:
            raise
        failures[system.name] = " ".join(str(error).split())[:200]
        system.restart_if_it_ended()


def _watched(row: Row, system: System, scale: Scale, prepared: Any) -> Measured:
    """With what it cost the server."""
    if row.is_of_its_own:
        return row.measure(system, scale, prepared)
    with system.watched() as spent:
        measured = row.measure(system, scale, prepared)
    costs = {MEMORY: spent.peak_memory / MB}
    while system.used_topics:
        loads.delete_topic(system.bootstrap, system.used_topics.pop())
    if measured.bytes:
        costs[CPU] = spent.cpu_seconds / (measured.bytes / GB)
    return measured._replace(figures={**measured.figures, **costs})


def _series(row: Row, found: dict[str, list[Measured]]) -> list[Series]:
    figures: dict[str, Figure] = {**row.figures, **COSTS}
    return [
        Series(
            row.name, name, figure.unit, figure.better, figure.goal,
            {system: [run.figures[name] for run in runs] for system, runs in found.items()},
        )
        for name, figure in figures.items()
        if all(name in run.figures for runs in found.values() for run in runs)
    ]  # fmt: skip


def in_words(series: Series) -> str:
    """The medians, and of two servers the ratio with its spread."""
    shown = [f"{name} {number(series.median(name))}" for name in series.values]
    if len(series.values) == 2:
        one, other = series.values
        ratio = series.ratio(one, other)
        if ratio is not None:
            shown.append(f"ratio {ratio:.2f} {series.spread(one, other)}")
    return f"{series.figure} ({series.unit}): {'   '.join(shown)}"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

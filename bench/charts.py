"""The pictures: how far ahead or behind each figure is, and the curves of growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib import pyplot as plt

from bench.compare import Series
from bench.growth import Curves

matplotlib.use("Agg")
AHEAD, BEHIND = "#2a9d5c", "#c8553d"


def draw_ratios(series: Sequence[Series], one: str, other: str, title: str, file: Path) -> None:
    """A bar for each figure: how many times better than the other, with the spread and the goal."""
    shown = [line for line in series if line.goal is not None and line.ratio(one, other) is not None]
    figure, axes = plt.subplots(figsize=(11, 0.27 * len(shown) + 1.6))
    for place, line in enumerate(shown):
        betters = sorted(_better(line, ratio) for ratio in line.ratios(one, other))
        middle = _better(line, line.ratio(one, other) or 1.0)
        axes.barh(place, middle - 1, left=1, color=AHEAD if line.is_met(one, other) else BEHIND, height=0.7)
        axes.plot([betters[0], betters[-1]], [place, place], color="black", linewidth=1)
        goal = _better(line, line.goal or 1.0)
        axes.plot([goal, goal], [place - 0.45, place + 0.45], color="black", linewidth=2)
        axes.text(max(middle, betters[-1], goal, 1.0) * 1.05, place, f"{middle:.2f}x", va="center", fontsize=8)
    axes.set_yticks(range(len(shown)), [f"{line.row}: {line.figure}" for line in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)  # the first row on top, and no room above it
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    ticks = [0.25, 0.5, 1, 2, 5, 10, 20]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(f"times better than {other} (bar: median, line: spread over the rounds, mark: the goal)")
    axes.set_title(title)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _better(line: Series, ratio: float) -> float:
    return ratio if line.better == "higher" else 1 / max(ratio, 1e-9)


def draw_growth(curves: Curves, colors: dict[str, str], title: str, file: Path) -> None:
    """Requests a second, CPU for a request, and memory, over partitions and over connections."""
    panels = (
        ("requests_per_second", "requests a second"),
        ("cpu_microseconds", "server CPU, µs a request"),
        (
            "memory",
            "peak memory, MB",
        ),
    )
    figure, grid = plt.subplots(len(curves), len(panels), figsize=(12, 3.4 * len(curves)), squeeze=False)
    for row, (over, systems) in zip(grid, curves.items(), strict=True):
        for axes, (name, label) in zip(row, panels, strict=True):
            for system, points in systems.items():
                axes.plot(
                    [point.size for point in points], [getattr(point, name) for point in points], marker="o",
                    color=colors[system], label=system,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            axes.set_xlabel(over)
            axes.set_title(label, fontsize=10)
            axes.grid(alpha=0.3)
    grid[0][0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)

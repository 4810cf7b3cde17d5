"""Draws what the watch saw: lag of each group over time, and below it who owned how many partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clicks.watch import GroupSample, Sample
from example_kit.plots import COLOURS, figure, mark_events, save

BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False, "fontsize": 9}


def draw(
    title: str, samples: Sequence[Sample], events: Sequence[tuple[float, str]], partitions: int, file: Path
) -> Path:
    """The plot, as a PNG file."""
    groups = list(dict.fromkeys(group for sample in samples for group in sample.groups))
    with_members = [group for group in groups if any(_owned(sample, group) for sample in samples)]
    height = 4.4 + 1.5 * len(with_members) + 0.24 * len(events)
    heights = [2.2, *[1.0] * len(with_members)]
    drawing, axes = figure(title, len(heights), heights=heights, size=(11, height))
    lag, *owned = axes
    for number, group in enumerate(groups):
        seen = [(sample.time, sample.groups[group].total_lag) for sample in samples if group in sample.groups]
        lag.plot(*zip(*seen, strict=True), color=COLOURS[number], linewidth=2, label=group)
    lag.set_ylim(bottom=0)
    lag.set_ylabel("lag (clicks)")
    lag.legend(**BESIDE)
    for axis, group in zip(owned, with_members, strict=True):
        times = [sample.time for sample in samples if group in sample.groups]
        shares = _by_member([sample.groups[group] for sample in samples if group in sample.groups])
        shades = COLOURS[2:] if len(groups) == 1 else COLOURS[2 + 3 * groups.index(group) :]
        axis.stackplot(times, *shares.values(), labels=shares, colors=shades, step="post", alpha=0.85, linewidth=0)
        axis.set_ylim(0, partitions)
        axis.set_yticks(range(0, partitions + 1, max(1, partitions // 3)))
        axis.set_ylabel("partitions")
        axis.set_title(f"owned in {group}", loc="left", fontsize=10)
        axis.legend(**BESIDE)
    axes[-1].set_xlabel("seconds")
    axes[-1].set_xlim(0, samples[-1].time if samples else 1)
    mark_events(axes, events)
    return save(drawing, file)


def _owned(sample: Sample, group: str) -> Mapping[str, tuple[int, ...]]:
    return sample.groups[group].owned if group in sample.groups else {}


def _by_member(seen: Sequence[GroupSample]) -> Mapping[str, list[int]]:
    members = dict.fromkeys(name for sample in seen for name in sample.owned)
    return {name: [len(sample.owned.get(name, ())) for sample in seen] for name in sorted(members)}

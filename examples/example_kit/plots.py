"""Plots that look alike: made with matplotlib, saved as PNG files, drawn without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

COLOURS = ("#2563a8", "#e07b39", "#3a9270", "#b5446e", "#7a5ea8", "#a8862b", "#4aa3bf", "#6b6b6b")
INK = "#333333"
FAINT = "#bbbbbb"


def figure(
    title: str, panels: int = 1, *, heights: Sequence[float] | None = None, size: tuple[float, float] = (11, 6)
) -> tuple[Figure, list[Axes]]:
    """A figure with a title and panels one above the other, which share the axis of time."""
    drawing = Figure(figsize=size, dpi=120, layout="constrained")
    FigureCanvasAgg(drawing)
    drawing.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", color=INK)
    axes = drawing.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color=FAINT, linewidth=0.6, alpha=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(colors=INK)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:,.0f}"))
    return drawing, list(axes)


def mark_events(axes: Sequence[Axes], events: Sequence[tuple[float, str]]) -> None:
    """A numbered line through all panels at each event's time, and under the last panel what the numbers mean."""
    for number, (time, _) in enumerate(events, 1):
        for axis in axes:
            axis.axvline(time, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=3)
        axes[0].annotate(
            str(number),
            (time, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 9 if number % 2 else 24),  # two rows, so that numbers close to one another do not touch
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            color="white",
            bbox={"boxstyle": "circle,pad=0.25", "facecolor": INK, "edgecolor": "none"},
            annotation_clip=False,
        )
    if events:
        said = "\n".join(f"{number}  at {time:.1f} s: {text}" for number, (time, text) in enumerate(events, 1))
        axes[-1].annotate(
            said,
            (0, 0),
            xycoords="axes fraction",
            xytext=(0, -40),
            textcoords="offset points",
            va="top",
            fontsize=9,
            color=INK,
            linespacing=1.5,
            annotation_clip=False,
        )


def save(drawing: Figure, file: Path) -> Path:
    """Writes the figure as PNG; returns where."""
    drawing.align_ylabels()
    drawing.savefig(file)
    return file

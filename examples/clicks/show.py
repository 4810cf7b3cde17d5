"""What somebody who watches sees: on a terminal a picture that is drawn over, elsewhere a line every two seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from clicks.stores import title_of

if TYPE_CHECKING:
    from clicks.stage import Stage

LINE_SECONDS = 2.0
DRAW_SECONDS = 0.25


class Picture:
    """The progress of the generator, and the groups with their members."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._next = time.monotonic() + LINE_SECONDS
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[made]}"), TimeRemainingColumn()
        )
        self._task = self._progress.add_task("clicks", total=None, made="", start=True)

    def open(self) -> None:
        if self._stage.run.live:
            self._live = Live(console=self._stage.run.console, auto_refresh=False, transient=True)
            self._live.start()

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self) -> None:
        """Draws, if it is time to."""
        if time.monotonic() < self._next:
            return
        if self._live is not None:
            self._next = time.monotonic() + DRAW_SECONDS
            self._live.update(self._draw(), refresh=True)
        else:
            self._next = time.monotonic() + LINE_SECONDS
            self._stage.run.say(self._line())

    def _draw(self) -> RenderableType:
        stage = self._stage
        rate = stage.made / stage.made_seconds if stage.made_seconds else 0
        made = f"{stage.made:,} made, {rate:,.0f}/s"
        self._progress.update(self._task, completed=stage.made_seconds, total=stage.seconds or None, made=made)
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading in ("group", "member", "store"):
            table.add_column(heading)
        for heading in ("partitions", "saved", "a second", "lag"):
            table.add_column(heading, justify="right")
        now = stage.clock()
        for group in stage.groups.values():
            sample = stage.watch.last(group.name)
            owned = sample.owned if sample is not None else {}
            rate = sum(member.rate.at(now) for member in group.members)
            total = (
                str(sum(map(len, owned.values()))),
                f"{group.saved:,}",
                f"{rate:,.0f}",
                f"{stage.lag(group.name):,}",
            )
            table.add_row(group.name, "", title_of(group.store), *total, style="bold")
            for member in group.members:
                state = "killed" if member.killed else "store is away" if member.away else ""
                cells = (str(len(owned.get(member.name, ()))), f"{member.saved:,}", f"{member.rate.at(now):,.0f}", "")
                table.add_row("", member.name, state, *cells, style="red" if state else "")
        for name, sample in stage.others():
            table.add_row(name, "", "", "", "", "", f"{sample.total_lag:,}", style="bold")
        return Stack(self._progress, table)

    def _line(self) -> str:
        stage = self._stage
        now = stage.clock()
        rate = stage.made / stage.made_seconds if stage.made_seconds else 0
        parts = [f"made {stage.made:,} ({rate:,.0f}/s)"]
        for group in stage.groups.values():
            rate = sum(member.rate.at(now) for member in group.members)
            parts.append(f"{group.name} saved {group.saved:,} ({rate:,.0f}/s), lag {stage.lag(group.name):,}")
        for name, sample in stage.others():
            parts.append(f"{name} lag {sample.total_lag:,}")
        return " | ".join(parts)

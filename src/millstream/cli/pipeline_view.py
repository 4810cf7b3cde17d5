"""How pipelines look while they run: a table that is drawn anew on a terminal, plain lines or JSON elsewhere.

The runner tells from a thread of its own (`update`); what is shown is shown by the main thread (`show`), so that
nothing is drawn into another drawing.
"""

from __future__ import annotations

import json as json_
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millstream.cli.units import count_text
from millstream.pipelines.status import PipelineStatus, QueryStatus, Snapshot, as_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

LINE_SECONDS = 10.0
_STYLES = {"running": "green", "failed": "bold red", "restarting": "yellow", "killed": "bold red"}


def view(*, json: bool, plain: bool = False) -> LiveView | LineView:
    """The right one for where the output goes."""
    return LiveView() if sys.stdout.isatty() and not (json or plain) else LineView(json=json)


class LiveView:
    """A picture on a terminal."""

    def __init__(self) -> None:
        self.snapshot: Snapshot = ()
        self._notes: list[str] = ["starting Spark"]
        self._started = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> LiveView:
        from rich.live import Live

        self._live = Live(self._picture(), auto_refresh=False)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self.show()
            self._live.__exit__(kind, error, trace)

    def update(self, snapshot: Snapshot) -> None:
        if not self.snapshot:
            self._notes = []
        self.snapshot = list(snapshot)

    def say(self, text: str) -> None:
        self._notes = [text]

    def show(self) -> None:
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        head = Text.assemble(
            ("millstream · pipelines", "bold"), f" · {minutes // 60}:{minutes % 60:02}:{seconds:02}",
            ("   Ctrl-C stops them", "dim"),
        )  # fmt: skip
        notes = [Text(note, style="yellow") for note in self._notes]
        return Group(head, Text(), picture_of(self.snapshot), *notes)


class LineView:
    """A line when something changes, and one for each query every few seconds."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self.snapshot: Snapshot = ()
        self._told: dict[str, tuple[str, str | None]] = {}
        self._modes: dict[tuple[str, str], str] = {}
        self._figures: dict[tuple[str, str], QueryStatus] = {}
        self._next = 0.0

    def __enter__(self) -> LineView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._next = 0.0
        self.show()

    def update(self, snapshot: Snapshot) -> None:
        self.snapshot = list(snapshot)

    def say(self, text: str) -> None:
        self._print(text, {"note": text})

    def show(self) -> None:
        snapshot = self.snapshot
        for pipeline in snapshot:
            self._tell_state(pipeline)
        if snapshot and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_SECONDS
            for pipeline in snapshot:
                self._tell_figures(pipeline)

    def _tell_state(self, pipeline: PipelineStatus) -> None:
        for query in pipeline.queries:
            if query.mode and self._modes.get((pipeline.name, query.name)) != query.mode:
                self._modes[pipeline.name, query.name] = query.mode
                if not self._json:
                    self._print(f"{pipeline.name}/{query.name}: {query.mode} ({query.why})", {})
        now = (pipeline.state, pipeline.error)
        if self._told.get(pipeline.name) != now:
            self._told[pipeline.name] = now
            error = f": {pipeline.error}" if pipeline.error else ""
            self._print(f"{pipeline.name}: {pipeline.state}{error}", as_json(pipeline))
            if self._json:  # the figures were in it
                self._figures |= {(pipeline.name, query.name): query for query in pipeline.queries}

    def _tell_figures(self, pipeline: PipelineStatus) -> None:
        changed = [
            q for q in pipeline.queries if q.batch is not None and self._figures.get((pipeline.name, q.name)) != q
        ]
        for query in changed:
            self._figures[pipeline.name, query.name] = query
            if not self._json:
                self._print(line_of(pipeline.name, query), {})
        if changed and self._json:
            self._print("", as_json(pipeline))

    def _print(self, text: str, values: dict[str, Any]) -> None:
        print(json_.dumps(values) if self._json else text, flush=True)


def line_of(pipeline: str, query: QueryStatus) -> str:
    """One query's figures in a line."""
    parts = [f"batch {_number(query.batch)}", f"{query.rows:,} rows"]
    if query.rows_per_second is not None:
        parts.append(f"{query.rows_per_second:,.0f}/s")
    if query.lag is not None:
        parts.append(f"lag {query.lag:,}")
    if query.batch_seconds is not None:
        parts.append(f"{query.batch_seconds:.2f} s a batch")
    if query.watermark is not None:
        parts.append(f"watermark {query.watermark}")
    if query.state_rows is not None:
        parts.append(f"{query.state_rows:,} rows of state")
    if query.late_rows:
        parts.append(f"{query.late_rows:,} late")
    if query.dead_letters:
        parts.append(count_text(query.dead_letters, "dead letter"))
    return f"{pipeline}/{query.name}: {', '.join(parts)}"


def picture_of(snapshot: Iterable[PipelineStatus]) -> RenderableType:
    """All queries in a table, and errors below it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("pipeline", "query", "mode", "state"):
        table.add_column(heading)
    numbers = ("rows", "rows/s", "lag", "batch", "batch time", "watermark", "state rows", "late", "dead letters")
    for heading in numbers:
        table.add_column(heading, justify="right")
    errors = []
    for pipeline in snapshot:
        state = Text(pipeline.state, style=_STYLES.get(pipeline.state, ""))
        for number, query in enumerate(pipeline.queries or (QueryStatus("-"),)):
            name = pipeline.name if number == 0 else ""
            table.add_row(name, query.name, query.mode or "-", state, *_figures(query))
        if pipeline.error:
            errors.append(Text(f"{pipeline.name}: {pipeline.error}", style="red"))
    return Group(table, *errors)


def _figures(query: QueryStatus) -> Sequence[str]:
    seconds = query.batch_seconds
    return (
        f"{query.rows:,}",
        "-" if query.rows_per_second is None else f"{query.rows_per_second:,.0f}",
        _number(query.lag),
        _number(query.batch),
        "-" if seconds is None else f"{seconds:.2f} s",
        (query.watermark or "-").removesuffix(".000Z").removesuffix("Z").replace("T", " "),
        _number(query.state_rows),
        f"{query.late_rows:,}",
        f"{query.dead_letters:,}",
    )


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"

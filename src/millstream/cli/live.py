"""How a platform looks on the screen: while it starts, while it runs, and when somebody asks for its status.

On a terminal there is a progress bar and then a picture that is drawn anew every second; elsewhere plain lines, the
first of which is always `listening on ADDRESS`. Rich is imported only when something is drawn.
"""

from __future__ import annotations

import contextlib
import json as json_
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from millstream.cluster.errors import ClusterError
from millstream.cluster.status import PartitionStatus, Status, Watch

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from millstream.cli.signals import Stop
    from millstream.cluster.connection import Connection
    from millstream.engines.engine import Engine
    from millstream.jvm.progress import Step

LOOK_SECONDS = 1.0
LINE_SECONDS = 60.0
MOST_ROWS = 12
"""Groups, and partitions in trouble, beyond this are only counted."""


@contextlib.contextmanager
def starting() -> Iterator[Callable[[Step], None]]:
    """Takes an engine's steps: a bar on a terminal, else a line on standard error for each new thing."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
        return
    last = ""

    def line(step: Step) -> None:
        nonlocal last
        if step.text != last:
            last = step.text
            print(step.text, file=sys.stderr, flush=True)

    yield line


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Step], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def show(step: Step) -> None:
            progress.update(task, description=step.text, completed=step.done or 0, total=step.total)

        yield show


def run(engine: Engine, connection: Connection, stop: Stop, *, json: bool = False) -> None:
    """Shows the platform until the word to stop comes, or none of its processes is left."""
    with Watch(connection) as watch:
        if sys.stdout.isatty() and not json:
            _draw(engine, watch, stop)
        else:
            _lines(engine, watch, stop, json=json)


def _draw(engine: Engine, watch: Watch, stop: Stop) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    started = time.monotonic()

    def picture() -> RenderableType:
        head = Text.assemble(
            (f"millstream · {engine.name} engine", "bold"), f" · up {_duration(time.monotonic() - started)}\n",
            ("listening on ", "dim"), (engine.bootstrap, "bold green"), ("   Ctrl-C stops it", "dim"),
        )  # fmt: skip
        troubles = [Text(trouble, style="bold red") for trouble in engine.health()]
        try:
            body: RenderableType = picture_of(watch.look())
        except ClusterError as error:
            body = Text(str(error), style="red")
        return Group(head, *troubles, Text(), body)

    with Live(picture(), auto_refresh=False, transient=True) as live:
        while not stop.wait(LOOK_SECONDS) and _lives(engine):
            live.update(picture(), refresh=True)


def _lines(engine: Engine, watch: Watch, stop: Stop, *, json: bool) -> None:
    """Lines of text, or JSON objects: one when it listens, then one for each look and each trouble."""

    def say(text: str, **values: Any) -> None:
        print(json_.dumps(values, default=str) if json else text, flush=True)

    say(f"listening on {engine.bootstrap}", bootstrap=engine.bootstrap, engine=engine.name)
    next_line = time.monotonic()
    troubles: list[str] = []
    while not stop.wait(LOOK_SECONDS) and _lives(engine):
        health = engine.health()
        if health != troubles:
            say("\n".join(health) or "all processes run again", troubles=health)
            troubles, next_line = health, time.monotonic()
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + LINE_SECONDS
            try:
                status = watch.look()
                say(line_of(status), **status.as_dict())
            except ClusterError as error:
                say(str(error), troubles=[str(error)])


def _lives(engine: Engine) -> bool:
    return any(process.pid is not None for process in engine.processes())


def line_of(status: Status) -> str:
    """The status in one line."""
    parts = [
        f"brokers {sum(broker.up for broker in status.brokers)}/{len(status.brokers)}",
        f"controller {_or_none(status.controller)}",
        f"topics {status.topics}",
        f"partitions {status.partitions}",
        f"under-replicated {len(status.under_replicated)}",
        f"offline {len(status.offline)}",
    ]
    if status.records_in is not None and status.records_out is not None:
        parts.append(f"in {status.records_in:.0f}/s out {status.records_out:.0f}/s")
    parts.append(f"groups {len(status.groups)} lag {sum(group.lag or 0 for group in status.groups)}")
    return ", ".join(parts)


def picture_of(status: Status) -> RenderableType:
    """The status as tables."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    under, offline = len(status.under_replicated), len(status.offline)
    facts.add_row("controller", _or_none(status.controller))
    facts.add_row("topics", f"{status.topics} and {status.internal_topics} internal")
    facts.add_row("partitions", str(status.partitions))
    facts.add_row("under-replicated", Text(str(under), style="bold yellow" if under else "green"))
    facts.add_row("offline", Text(str(offline), style="bold red" if offline else "green"))
    if status.records_in is not None and status.records_out is not None:
        facts.add_row("records", f"in {status.records_in:,.0f}/s   out {status.records_out:,.0f}/s")
    brokers = _table("broker", "address", "state", ">leaders", ">replicas")
    for broker in status.brokers:
        state = Text("up", style="green") if broker.up else Text("down", style="bold red")
        if broker.controller:
            state.append(" controller", style="cyan")
        brokers.add_row(str(broker.id), broker.address, state, str(broker.leaders), str(broker.replicas))
    parts: list[RenderableType] = [facts, Text(), brokers]
    trouble = _without_own_first(status.offline) | _without_own_first(status.under_replicated)
    if trouble:
        table = _table("partition", "leader", "replicas", "in sync")
        for part in list(trouble.values())[:MOST_ROWS]:
            leader = Text("none", style="bold red") if part.leader is None else Text(str(part.leader))
            replicas, isr = (",".join(map(str, nodes)) for nodes in (part.replicas, part.isr))
            table.add_row(f"{part.topic}-{part.partition}", leader, replicas, isr or "none")
        parts += [Text(), table, *_more(len(trouble))]
    if status.groups:
        table = _table("group", "state", ">lag")
        for group in status.groups[:MOST_ROWS]:
            table.add_row(group.group, group.state, "?" if group.lag is None else f"{group.lag:,}")
        parts += [Text(), table, *_more(len(status.groups))]
    parts += [Text(note, style="yellow") for note in status.notes]
    return Group(*parts)


def _without_own_first(parts: list[PartitionStatus]) -> dict[tuple[str, int], PartitionStatus]:
    """By name; Kafka's own topics, which have many partitions, come last."""
    ordered = sorted(parts, key=lambda part: (part.topic.startswith("__"), part.topic, part.partition))
    return {(part.topic, part.partition): part for part in ordered}


def _more(count: int) -> list[RenderableType]:
    from rich.text import Text

    return [Text(f"and {count - MOST_ROWS} more", style="dim")] if count > MOST_ROWS else []


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading.lstrip(">"), justify="right" if heading.startswith(">") else "left")
    return table


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"

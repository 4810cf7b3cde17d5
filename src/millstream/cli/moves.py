"""How a plan for moving partitions is shown, and carried out with its progress."""

from __future__ import annotations

import contextlib
import json as json_
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from millstream.cli.output import Column, print_json, show_rows, warn
from millstream.cli.units import count_text, size_text
from millstream.cluster.errors import BadInput

if TYPE_CHECKING:
    from millstream.cluster.connection import Connection
    from millstream.cluster.plans import Plan
    from millstream.cluster.reassignment import Progress

_INTERRUPTED = 130


def write_plan(file: Path, content: dict[str, Any]) -> None:
    try:
        file.write_text(json_.dumps(content, indent=2) + "\n")
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error


def carry_out(
    connection: Connection,
    plan: Plan,
    *,
    execute: bool,
    wait: bool,
    json: bool,
    nothing: str,
    verify: Callable[[], str] | None = None,
) -> None:
    """Shows the plan; with `execute` does it, and says what became of it."""
    from millstream.cluster import plans, reassignment

    if not json:
        _show_plan(plan, nothing)
    sentence = nothing if not plan.moves else ""
    if execute and plan.moves:
        with _progress(json=json) as progress:
            reassignment.execute(connection, plan.moves, progress, wait=wait)
        count = count_text(len(plan.moves), "partition")
        sentence = f"{count} moved" if wait else f"{count} on the way: `cluster reassignments` shows them"
    if execute and wait and verify is not None:
        sentence = verify()
    if json:
        print_json(
            {
                **plans.to_json(plan.moves),
                "current": plans.to_json(plan.moves, undo=True)["partitions"],
                "copies": plan.copies,
                "copy_bytes": plan.size_bytes,
                "before": [load._asdict() for load in plan.before],
                "after": [load._asdict() for load in plan.after],
                "notes": plan.notes,
                "executed": execute,
                "done": execute and (wait or not plan.moves),
            }
        )
    elif execute and plan.moves:
        print(sentence)
    elif plan.moves:
        say_how_to_execute()


def _show_plan(plan: Plan, nothing: str) -> None:
    for note in plan.notes:
        warn(note)
    if not plan.moves:
        print(f"nothing to do: {nothing}")
        return
    moves = [
        {
            "topic": move.topic,
            "partition": move.partition,
            "before": list(move.before),
            "after": list(move.after),
            "copies": ", ".join(f"to {broker}" for broker in move.adding) or "order only",
        }
        for move in plan.moves
    ]
    columns = [
        Column("topic", "TOPIC"),
        Column("partition", "PARTITION", number=True),
        Column("before", "REPLICAS NOW"),
        Column("after", "REPLICAS THEN"),
        Column("copies", "COPY"),
    ]
    show_rows(moves, columns, json=False)
    print()
    before = {load.broker: load for load in plan.before}
    rows = [
        {
            "broker": load.broker,
            "replicas": f"{before[load.broker].replicas} -> {load.replicas}",
            "leaders": f"{before[load.broker].leaders} -> {load.leaders}",
        }
        for load in plan.after
    ]
    columns = [
        Column("broker", "BROKER", number=True),
        Column("replicas", "REPLICAS", number=True),
        Column("leaders", "PREFERRED LEADER OF", number=True),
    ]
    show_rows(rows, columns, json=False)
    partitions, copies = count_text(len(plan.moves), "partition"), count_text(plan.copies, "replica")
    print(f"\n{partitions} to change, {copies} to copy ({size_text(plan.size_bytes)})")


def say_how_to_execute() -> None:
    print("\nThis is the plan. Nothing was changed; --execute does it.")


@contextlib.contextmanager
def _progress(*, json: bool) -> Iterator[Progress]:
    """A bar on a terminal, a line for each step elsewhere, nothing for machines."""
    try:
        if json:
            yield lambda done, total: None
        elif sys.stdout.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            with Bar(*columns) as bar:
                task = bar.add_task("moving", total=None)
                yield lambda done, total: bar.update(task, completed=done, total=total)
        else:
            yield _PlainProgress().tell
    except KeyboardInterrupt:
        warn("interrupted; the cluster goes on moving (`cluster reassignments` shows it, with --cancel takes it back)")
        raise typer.Exit(_INTERRUPTED) from None


class _PlainProgress:
    """A line whenever the number has changed."""

    def __init__(self) -> None:
        self._last = -1

    def tell(self, done: int, total: int) -> None:
        if done != self._last:
            print(f"{done} of {count_text(total, 'partition')} moved", flush=True)
            self._last = done

"""`millstream graduate`: the move from one cluster to another, planned, done, verified."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.graduate_report import show_outcome, show_preflight
from millstream.cli.interrupts import INTERRUPTED, interruptible
from millstream.cli.options import Bootstrap, Context, Execute, Json, command_app
from millstream.cli.output import fail, print_json, warn

if TYPE_CHECKING:
    from millstream.cluster.connection import Connection
    from millstream.cluster.graduation.copying import Progress

app = command_app("Move topics, records and group positions to another cluster.")


@app.command("graduate")
def graduate(
    to: Annotated[str, typer.Option("--to", metavar="HOST:PORT|CONTEXT", help="The cluster to move to.")],
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST:PORT|CONTEXT", help="The cluster to move from. [default: the context's]"),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="PATTERN", help="Move only topics of such a name; may be repeated. [default: *]"
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="PATTERN", help="Leave such topics out; may be repeated.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", min=1, help="Of new topics. [default: the target's own]")
    ] = None,
    skip_config: Annotated[
        list[str] | None,
        typer.Option("--skip-config", metavar="NAME", help="Leave this config behind; may be repeated."),
    ] = None,
    placeholders: Annotated[
        str,
        typer.Option(
            metavar="markers|records",
            help="What holds the place of offsets without a record: transaction markers, which consumers never see, or "
            "records with the key millstream.filler, where the target does not allow markers.",
        ),
    ] = "markers",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what arrives meanwhile, until the source is caught up with.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Move the positions of groups that have members, or other positions at the target."
        ),
    ] = False,
    state: Annotated[
        Path | None, typer.Option("--state", help="The file that remembers the move. [default: beside the contexts]")
    ] = None,
    execute: Execute = False,
    json: Json = False,
) -> None:
    """Move topics, records at the same offsets, and group positions to another cluster. Shows the plan; --execute
    does it."""
    from millstream.cluster.errors import BadInput
    from millstream.cluster.graduation.moving import Move
    from millstream.cluster.graduation.moving import execute as carry_out
    from millstream.cluster.graduation.preflight import Options, preflight, side
    from millstream.cluster.graduation.state import State

    if placeholders not in ("markers", "records"):
        raise BadInput(f"--placeholders: {placeholders!r} is neither markers nor records")
    source, target = _source(from_, bootstrap, context), _named(to, "--to")
    options = Options(
        topic or (),
        exclude or (),
        replication_factor or -1,
        skip_config or (),
        placeholders == "records",
        force,
        follow,
    )
    with ExitStack() as stack:
        admins = stack.enter_context(source.admin()), stack.enter_context(target.admin())
        sides = side(source.bootstrap, admins[0]), side(target.bootstrap, admins[1])
        state_file = state or _state_file(*(part.cluster_id for part in sides))
        memory = State.load(state_file, *(part.cluster_id for part in sides))
        plan = preflight(*admins, sides, options, memory)
        if not json:
            show_preflight(plan)
        if plan.blockers:
            if json:
                print_json(preflight_json(plan))
            fail(f"{len(plan.blockers)} in the way; nothing was moved")
        if not execute:
            if json:
                print_json(preflight_json(plan))
            else:
                print("\nNothing was moved yet: --execute does it.")
            return
        try:
            with interruptible() as check, _progress(check, quiet=json) as report:
                outcome = carry_out(Move(source, target, admins, plan, options, memory, report))
        except KeyboardInterrupt:
            fail("stopped; the same command goes on where it was", INTERRUPTED)
        if json:
            print_json({"plan": preflight_json(plan), "outcome": outcome_json(outcome)})
        else:
            show_outcome(plan, outcome)
        if outcome.refused_groups:
            names = ", ".join(name for name, _ in outcome.refused_groups)
            fail(f"records are moved, but not the positions of {names}; the same command tries again")


def _source(from_: str | None, bootstrap: str | None, context: str | None) -> Connection:
    from millstream.cluster.contexts import resolve
    from millstream.cluster.errors import BadInput

    if from_ is None:
        return resolve(bootstrap, context)
    if bootstrap or context:
        raise BadInput("--from and --bootstrap or --context all name the source: give one of them")
    return _named(from_, "--from")


def _named(text: str, argument: str) -> Connection:
    """An address, or the name of a context, which also has what is needed to log in."""
    from millstream.cluster.contexts import load, resolve
    from millstream.cluster.errors import BadInput

    if ":" in text:
        try:
            return resolve(text, None)
        except BadInput as error:
            raise BadInput(f"{argument}: {error}") from error
    return load().get(text, argument)


def _state_file(source_id: str, target_id: str) -> Path:
    from millstream.cluster import contexts

    return contexts.path().parent / "graduate" / f"{source_id}-{target_id}.json"


@contextmanager
def _progress(check: Callable[[], None], *, quiet: bool) -> Iterator[Any]:
    """A bar for each phase on standard error: in place on a terminal, a line now and then elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield _Lines(check, quiet=quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from millstream.cli.units import size_text

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(phase: str, progress: Any, total: int) -> None:
            check()
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, text="")
            text = f"{progress.records:,} records, {size_text(progress.bytes)}"
            bars.update(tasks[phase], total=max(total, 1), completed=progress.offsets if total else 1, text=text)

        yield report


class _Lines:
    """Progress where nothing can be drawn over: one line every ten seconds."""

    def __init__(self, check: Callable[[], None], *, quiet: bool) -> None:
        self._check = check
        self._quiet = quiet
        self._next = 0.0

    def __call__(self, phase: str, progress: Progress, total: int) -> None:
        self._check()
        now = time.monotonic()
        if self._next == 0.0:
            self._next = now + 10
        if not self._quiet and now >= self._next:
            self._next = now + 10
            warn(f"{phase}: {progress.offsets:,} of {total:,} offsets, {progress.records:,} records")


def preflight_json(plan: Any) -> dict[str, Any]:
    """The plan as plain JSON data."""
    return {
        "source": plan.source._asdict(),
        "target": plan.target._asdict(),
        "topics": [
            {
                **topic._asdict(),
                "offsets": topic.offsets,
                "to_copy": topic.to_copy,
                "partitions": [part._asdict() for part in topic.partitions],
            }
            for topic in plan.topics
        ],
        "groups": [
            {
                **group._asdict(),
                "positions": [
                    {"topic": where.topic, "partition": where.partition, "offset": offset, "metadata": metadata}
                    for where, (offset, metadata) in group.positions.items()
                ],
            }
            for group in plan.groups
        ],
        "left_out": [entry._asdict() for entry in plan.left_out],
        "notes": list(plan.notes),
        "blockers": [blocker._asdict() for blocker in plan.blockers],
    }


def outcome_json(outcome: Any) -> dict[str, Any]:
    """What was done as plain JSON data."""
    return {
        **outcome._asdict(),
        "comparisons": [
            {**found._asdict(), "source": found.source._asdict(), "target": found.target._asdict()}
            for found in outcome.comparisons
        ],
        "groups": [group._asdict() for group in outcome.groups],
        "refused_groups": [{"group": name, "why": why} for name, why in outcome.refused_groups],
    }

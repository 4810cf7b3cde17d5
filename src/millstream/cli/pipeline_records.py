"""`millstream pipeline reset` and `verify`: a pipeline begins anew elsewhere; it is compared with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.options import Bootstrap, Context, Execute, Json
from millstream.cli.output import Column, fail, print_json, show_rows
from millstream.cli.pipeline_common import (
    Home,
    Master,
    Memory,
    Named,
    cluster_of,
    described,
    files_at,
    home_at,
    need_spark,
    spark_errors,
)
from millstream.cli.units import count_text

if TYPE_CHECKING:
    from millstream.pipelines.resets import ResetPlan

CHECKPOINTS = (
    Column("query", "query", whole=True),
    Column("batch", "last batch", number=True),
    Column("state", "state"),
    Column("path", "checkpoint removed"),
)
MOVES = (
    Column("query", "query", whole=True),
    Column("topic", "topic", whole=True),
    Column("partition", "partition", number=True),
    Column("before", "is at", number=True),
    Column("after", "goes on at", number=True),
    Column("again", "again", number=True),
    Column("skipped", "skipped", number=True),
)
REPORTS = (
    Column("sink", "sink", whole=True),
    Column("expected", "expected", number=True),
    Column("found", "found", number=True),
    Column("missing", "missing", number=True),
    Column("doubled", "doubled", number=True),
    Column("unexpected", "unexpected", number=True),
    Column("note", "note"),
)


def reset(
    name: Named,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="POSITION",
            help="earliest, latest, a time (2026-05-01T12:00 in UTC, @MILLISECONDS, 15m for 15 minutes ago), or "
            "offsets as TOPIC:PARTITION=OFFSET,...; partitions that are not named stay where they are.",
        ),
    ],
    home: Home = None,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Let a pipeline begin anew somewhere else; says first what happens to its outputs."""
    from millstream.pipelines import resets

    target = resets.parse_to(to)
    where = home_at(home)
    pipeline = described(name, where)
    folder = where.pipeline(pipeline.name)
    connection = cluster_of(folder, bootstrap, context)
    with files_at(folder.checkpoint_root(), where) as files:
        plan = resets.plan(connection, pipeline, folder, target, files)
        if execute:
            resets.execute(plan, pipeline, folder, files)
    if json:
        print_json(resets.as_json(plan, executed=execute))
        return
    _show_reset(plan)
    print()
    if execute:
        print(f"reset: {pipeline.name} goes on there when it is run next")
    elif plan.blocker:
        print(f"not now: {plan.blocker}")
    else:
        print("nothing was reset; --execute does it")


def _show_reset(plan: ResetPlan) -> None:
    show_rows([entry._asdict() for entry in plan.removed], CHECKPOINTS, json=False, empty="it has no checkpoints yet")
    if plan.moves:
        print()
        show_rows([move._asdict() for move in plan.moves], MOVES, json=False)
        again, skipped = count_text(plan.again, "record"), count_text(plan.skipped, "record")
        print(f"{again} processed again, {skipped} skipped")
    print("\nwhat happens to its outputs:")
    for output in plan.outputs:
        print(f"  {output.sink}: {output.what if plan.repeats else 'nothing is written again'}")
        if plan.repeats and output.doubles and output.empty:
            print(f"    to empty it: {output.empty}")
    if plan.notes:
        print()
    for note in plan.notes:
        print(note)


def verify(
    name: Named,
    home: Home = None,
    master: Master = None,
    memory: Memory = "1g",
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Compare a pipeline's outputs with its source: what is missing, doubled, or should not be there."""
    need_spark()
    where = home_at(home)
    pipeline = described(name, where)
    connection = cluster_of(where.pipeline(pipeline.name), bootstrap, context)
    connection.check()
    from millstream.pipelines.spark.verify import verify as verify_on_spark

    with spark_errors():
        reports = verify_on_spark(pipeline, connection, where, master=master, memory=memory)
    rows = [{**report._asdict(), "examples": list(report.examples)} for report in reports]
    if json:
        print_json({"pipeline": pipeline.name, "sinks": rows})
    else:
        columns = REPORTS if any(row["note"] for row in rows) else REPORTS[:-1]
        show_rows([{**row, "note": row["note"] or None} for row in rows], columns, json=False)
        for row in rows:
            for example in row["examples"]:
                print(f"  {row['sink']}: {example}")
    wrong = [report.sink for report in reports if report.missing or report.doubled or report.unexpected]
    if wrong:
        fail(f"{', '.join(wrong)}: not what the source says")

"""`millstream group ...`: consumer groups, their members and lag, and moving their positions."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.cli.options import Bootstrap, Context, Execute, Json, command_app
from millstream.cli.output import Column, done, fail, print_json, show_rows, show_values
from millstream.cli.topic import confirm
from millstream.cluster import groups
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput

app = command_app("Consumer groups: list, describe, lag, delete, seek.")

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group.")]
LIST = (
    Column("group", "group", whole=True),
    Column("type", "type"),
    Column("state", "state", whole=True),
    Column("protocol_type", "protocol"),
)
MEMBERS = (
    Column("client_id", "client", whole=True),
    Column("host", "host"),
    Column("partitions", "partitions"),
    Column("member_id", "member"),
)
PARTITIONS = (
    Column("topic", "topic", whole=True),
    Column("partition", "partition", number=True),
    Column("committed", "committed", number=True),
    Column("end", "end", number=True),
    Column("lag", "lag", number=True),
    Column("client_id", "client", whole=True),
)
TOTALS = (
    Column("group", "group", whole=True),
    Column("state", "state", whole=True),
    Column("topics", "topics", number=True),
    Column("partitions", "partitions", number=True),
    Column("lag", "lag", number=True),
)
MOVES = (
    Column("topic", "topic", whole=True),
    Column("partition", "partition", number=True),
    Column("before", "before", number=True),
    Column("after", "after", number=True),
    Column("change", "change", number=True),
    Column("note", "note"),
)


@app.command("list")
def list_(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only groups in this state, for example stable; repeatable."),
    ] = None,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only classic, consumer, share or streams groups; repeatable."),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """List the groups with their type and state."""
    found = groups.list_groups(resolve(bootstrap, context), state or (), type or ())
    show_rows([group._asdict() for group in found], LIST, json=json, empty="no groups")


@app.command()
def describe(name: Name, bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """Show a group: its members, what they read, and position and lag in each partition."""
    group = groups.describe_group(resolve(bootstrap, context), name)
    members = [member._asdict() for member in group.members]
    partitions = [partition._asdict() for partition in group.partitions]
    if json:
        print_json({**group._asdict(), "members": members, "partitions": partitions})
        return
    lag = f"{sum(partition.lag or 0 for partition in group.partitions):,}"
    if unknown := sum(partition.lag is None for partition in group.partitions):
        lag += f" (not known for {unknown} of {len(partitions)} partitions: no position yet, or no end to be had)"
    facts = {"group": name, "state": group.state, "type": group.type, "assignor": group.assignor or "-"}
    show_values({**facts, "coordinator": group.coordinator, "members": len(members), "lag": lag}, json=False)
    if members:
        for row, member in zip(members, group.members, strict=True):
            row["partitions"] = [_partitions_text(topic, parts) for topic, parts in member.partitions.items()]
            if member.instance_id:
                row["member_id"] = f"{member.member_id} (static: {member.instance_id})"
        print()
        show_rows(members, MEMBERS, json=False)
    if partitions:
        print()
        show_rows(partitions, PARTITIONS, json=False)
    else:
        print("\nno positions committed")


@app.command()
def lag(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP", help="The consumer groups. [default: all]")
    ] = None,
    max: Annotated[
        int | None,
        typer.Option("--max", min=0, metavar="N", help="Exit with 1 if a group has more lag than this, for scripts."),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Show how many records each group is behind."""
    totals = groups.total_lags(resolve(bootstrap, context), names or ())
    rows = [total._asdict() for total in totals]
    if not json:
        for row in rows:
            row["lag"] = f"{row['lag']:,}"
    show_rows(rows, TOTALS, json=json, empty="no groups")
    behind = [total for total in totals if max is not None and total.lag > max]
    if behind:
        fail(", ".join(f"{total.group} is {total.lag:,} behind" for total in behind) + f"; --max is {max:,}")


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="GROUP", help="The consumer groups.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Delete groups and their positions; asks first."""
    connection = resolve(bootstrap, context)
    confirm(f"Delete {', '.join(names)} with all positions at {connection.bootstrap}?", yes)
    groups.delete_groups(connection, names)
    done(f"deleted {', '.join(names)}", json=json, deleted=names)


@app.command()
def seek(
    name: Name,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="POSITION",
            help="earliest, latest, an offset, +N or -N to shift, a time (2026-05-01T12:00 in UTC, @MILLISECONDS), "
            "15m for 15 minutes ago.",
        ),
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:N,...]",
            help="The topic, or some partitions of it; repeatable. [default: all that the group has positions in]",
        ),
    ] = None,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Move the positions of a group whose consumers are stopped."""
    connection = resolve(bootstrap, context)
    target = groups.parse_target(to)
    topics: dict[str, list[int]] = {}
    for text in topic or ():
        found, partitions = groups.parse_topic(text)
        if found in topics:
            raise BadInput(f"--topic: {found} is given twice; write {found}:0,1,... once")
        topics[found] = partitions
    plan = groups.plan_seek(connection, name, topics, target)
    if execute:
        groups.seek(connection, plan)
    rows = [move._asdict() for move in plan.moves]
    if json:
        facts = {"group": name, "exists": plan.exists, "executed": execute, "blocker": plan.blocker}
        print_json({**facts, "partitions": rows})
        return
    for row in rows:
        row["change"] = None if row["change"] is None else f"{row['change']:+}"
    noted = any(move.note for move in plan.moves)
    show_rows(rows, MOVES if noted else MOVES[:-1], json=False)
    print()
    if execute:
        print(f"moved {name}")
    elif plan.blocker:
        print(f"not now: {plan.blocker}")
    else:
        new = "" if plan.exists else f"; there is no group {name} yet, it would be made"
        print(f"nothing was moved{new}; --execute does it")


def _partitions_text(topic: str, partitions: list[int]) -> str:
    return f"{topic}:{','.join(map(str, partitions))}"

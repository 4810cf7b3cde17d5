"""`millstream topic ...`: topics listed, made, changed, deleted, truncated, cloned, and their records in and out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from millstream.cli import topic_records
from millstream.cli.options import Bootstrap, Context, Execute, Json, command_app
from millstream.cli.output import Column, done, fail, print_json, show_rows, show_values
from millstream.cli.units import size_text
from millstream.cluster import configs as configs_
from millstream.cluster import topics
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput
from millstream.cluster.positions import parse_position

app = command_app("Topics and their records: list, create, describe, alter, delete, produce, consume, ...")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
Configs = Annotated[
    list[str] | None,
    typer.Option(
        "--config", metavar="NAME=VALUE", help="A topic config, for example retention.ms=3600000; repeatable."
    ),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", min=1, max=32767, metavar="N", help="Copies of each partition."),
]
LIST = (
    Column("name", "topic", whole=True),
    Column("partitions", "partitions", number=True),
    Column("replication_factor", "replicas", number=True),
    Column("records", "records", number=True),
    Column("size", "size", number=True),
    Column("configs", "configs"),
)
PARTITIONS = (
    Column("partition", "partition", number=True),
    Column("leader", "leader", number=True),
    Column("replicas", "replicas"),
    Column("isr", "in sync"),
    Column("first_offset", "first offset", number=True),
    Column("end_offset", "end offset", number=True),
    Column("records", "records", number=True),
    Column("size", "size", number=True),
)
CHANGES = (
    Column("name", "config", whole=True),
    Column("before", "before"),
    Column("after", "after"),
    Column("source", "set on", whole=True),
)
TRUNCATIONS = (
    Column("partition", "partition", number=True),
    Column("first_offset", "first offset", number=True),
    Column("before", "new first offset", number=True),
    Column("end_offset", "end offset", number=True),
    Column("records", "records deleted", number=True),
)


@app.command("list")
def list_(
    internal: Annotated[bool, typer.Option("--internal", help="Show Kafka's internal topics too.")] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """List the topics with their partitions, records, size and configs."""
    found = topics.list_topics(resolve(bootstrap, context), internal=internal)
    rows = [topic._asdict() for topic in found]
    if not json:
        for row in rows:
            row["size"] = size_text(row["size"])
            row["records"] = _number(row["records"])
            row["configs"] = [f"{name}={value}" for name, value in row["configs"].items()]
    show_rows(rows, LIST, json=json, empty="no topics (`millstream topic create NAME` makes one)")


@app.command()
def create(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, max=100_000, metavar="N", help="How many. [default: the cluster's]"),
    ] = None,
    replication_factor: ReplicationFactor = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing if there is a topic of this name already.")
    ] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Create a topic."""
    configs = configs_.parse_assignments(config or (), "--config")
    made = topics.create_topic(
        resolve(bootstrap, context),
        name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=configs,
        if_not_exists=if_not_exists,
    )
    shape = f"{_count(made.partitions, 'partition')}, replication factor {made.replication_factor}"
    sentence = f"created {name}: {shape}" if made.created else f"{name} is there already: {shape}; nothing was changed"
    done(sentence, json=json, **made._asdict())


@app.command()
def describe(name: Name, bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """Show a topic: its configs, and leader, replicas, offsets and size of each partition."""
    topic = topics.describe_topic(resolve(bootstrap, context), name)
    rows = [partition._asdict() for partition in topic.partitions]
    if json:
        print_json({**topic._asdict(), "partitions": rows})
        return
    for row in rows:
        row["size"] = size_text(row["size"])
    facts = {
        "topic": topic.name + (" (internal)" if topic.internal else ""),
        "id": topic.id,
        "partitions": len(rows),
        "replication_factor": topic.replication_factor,
        "configs": [f"{key}={value}" for key, value in topic.configs.items()] or "none of its own",
    }
    show_values(facts, json=False)
    print()
    show_rows(rows, PARTITIONS, json=False)


@app.command()
def alter(
    name: Name,
    config: Configs = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="NAME", help="A config to set back to the cluster's default; repeatable."),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Change the configs of a topic."""
    values = configs_.parse_assignments(config or (), "--config")
    if not values and not unset:
        raise BadInput("nothing to alter: give --config NAME=VALUE or --unset NAME")
    argument = " ".join(
        [*(f"--config {key}={value}" for key, value in values.items()), *map("--unset {}".format, unset or ())]
    )
    changes = configs_.change(resolve(bootstrap, context), "topic", name, values, unset or (), argument=argument)
    show_rows([change._asdict() for change in changes], CHANGES, json=json)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The topics.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Delete topics and all their records; asks first."""
    connection = resolve(bootstrap, context)
    confirm(f"Delete {', '.join(names)} with all records at {connection.bootstrap}?", yes)
    topics.delete_topics(connection, names)
    done(f"deleted {', '.join(names)}", json=json, deleted=names)


@app.command("add-partitions")
def add_partitions(
    name: Name,
    to: Annotated[int | None, typer.Option("--to", min=1, metavar="N", help="How many it shall have.")] = None,
    add: Annotated[int | None, typer.Option("--add", min=1, metavar="N", help="How many more it shall have.")] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Give a topic more partitions; records stay where they are, so keys may go elsewhere from then on."""
    if (to is None) == (add is None):
        raise BadInput("give either --to N, how many partitions it shall have, or --add N, how many more")
    before, after = topics.add_partitions(resolve(bootstrap, context), name, to=to, add=add)
    done(f"{name} has {after} partitions now; it had {before}", json=json, name=name, before=before, partitions=after)


@app.command()
def truncate(
    name: Name,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="POSITION",
            help="Delete the records before this: an offset, a time (2026-05-01T12:00, @MILLISECONDS, 7d ago as 7d), "
            "-N to keep the last N of each partition, or all.",
        ),
    ],
    partition: topic_records.Partitions = None,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Delete the oldest records of a topic."""
    connection = resolve(bootstrap, context)
    position = parse_position(before, "--before")
    plan = topics.plan_truncate(connection, name, position, topic_records.partition_numbers(partition))
    if execute:
        topics.truncate(connection, name, plan)
    rows = [part._asdict() for part in plan]
    count = sum(part.records for part in plan)
    if json:
        print_json({"topic": name, "executed": execute, "records": count, "partitions": rows})
        return
    show_rows(rows, TRUNCATIONS, json=False)
    print()
    print(
        f"{_count(count, 'record')} deleted"
        if execute
        else f"{_count(count, 'record')} would be deleted; --execute does it"
    )


@app.command()
def clone(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The topic to copy.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The new topic.")],
    data: Annotated[
        bool,
        typer.Option(
            "--data", help="Copy the records too: same partitions, keys, headers and timestamps, new offsets."
        ),
    ] = False,
    config: Configs = None,
    replication_factor: ReplicationFactor = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Make a topic like another one: same partitions and configs, and with --data the same records."""
    from millstream.cli.progress import Progress
    from millstream.cluster import cloning

    configs = configs_.parse_assignments(config or (), "--config")
    connection = resolve(bootstrap, context)
    try:
        with Progress("copying") as progress:
            cloned = cloning.clone(
                connection,
                source,
                target,
                configs=configs,
                replication_factor=replication_factor,
                data=data,
                progress=progress.of,
            )
    except KeyboardInterrupt:
        fail(f"interrupted: {target} may be there with only some of the records")
    shape = f"{_count(cloned.partitions, 'partition')}, replication factor {cloned.replication_factor}"
    copied = f", {_count(cloned.records, 'record')} ({size_text(cloned.bytes)})" if data else ", no records (--data)"
    done(f"cloned {source} to {target}: {shape}{copied}", json=json, **cloned._asdict())


app.command("produce")(topic_records.produce)
app.command("consume")(topic_records.consume)
app.command("tail")(topic_records.tail)


def confirm(question: str, yes: bool) -> None:
    """Goes on if it is wanted: said with --yes, or answered on a terminal; where nobody can answer, --yes is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInput("this cannot be undone and there is no terminal to ask on: give --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        fail("nothing was done")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def _number(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"

"""`millstream cluster`: what a cluster is and does, and how its partitions are moved between brokers.

The commands that move something show their plan and stop; `--execute` does it and stays until it is done. Interrupted
(Ctrl-C), they say so and leave the cluster to go on: `cluster reassignments` shows what is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from millstream.cli.moves import carry_out, say_how_to_execute, write_plan
from millstream.cli.options import Bootstrap, Context, Execute, Json, command_app
from millstream.cli.output import Column, print_json, show_rows, show_values
from millstream.cli.units import count_text, size_text
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput

app = command_app("See a cluster, and move its partitions between brokers.")

Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Stay until the partitions have moved; the cluster moves them anyway.")
]


@app.command()
def info(bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """Show the cluster's identity, controller, brokers, partitions and what is wrong with them."""
    from millstream.cluster import brokers

    found = brokers.describe(resolve(bootstrap, context))
    if json:
        print_json(found._asdict())
        return
    internal = f" ({len(found.internal_topics)} internal)" if found.internal_topics else ""
    fenced = f" (fenced: {', '.join(map(str, found.fenced_brokers))})" if found.fenced_brokers else ""
    values = {
        "cluster id": found.cluster_id,
        "protocol": f"Kafka {found.version}",
        "controller": found.controller,
        "controller quorum": found.voters,
        "brokers": ", ".join(map(str, found.brokers)) + fenced,
        "topics": f"{found.topics}{internal}",
        "partitions": f"{found.partitions} ({found.replicas} replicas)",
        "under-replicated": _some(found.under_replicated),
        "offline": _some(found.offline),
        "not led as preferred": found.not_led_by_preferred,
        "internal topics": found.internal_topics,
        "feature levels": ", ".join(f"{name} {level}" for name, level in found.features.items()),
    }
    show_values(values, json=False)


def _some(names: list[str]) -> str:
    if not names:
        return "0"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)}: {', '.join(names[:5])}{more}"


@app.command("brokers")
def brokers_(bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """List the brokers with what they lead and hold."""
    from millstream.cluster import brokers

    rows = [row._asdict() for row in brokers.list_brokers(resolve(bootstrap, context))]
    if not json:
        rows = [
            {
                **row,
                "address": f"{row['host']}:{row['port']}" if row["port"] else "-",
                "size": size_text(row["size_bytes"]),
                "free": size_text(row["usable_bytes"]),
            }
            for row in rows
        ]
    columns = [
        Column("id", "ID", number=True),
        Column("address", "ADDRESS"),
        Column("rack", "RACK"),
        Column("state", "STATE"),
        Column("controller", "CONTROLLER"),
        Column("leaders", "LEADS", number=True),
        Column("replicas", "HOLDS", number=True),
        Column("size", "SIZE", number=True),
        Column("free", "FREE", number=True),
    ]
    show_rows(rows, columns, json=json, empty="no brokers")


@app.command()
def apis(bootstrap: Bootstrap = None, context: Context = None, json: Json = False) -> None:
    """List the APIs of the protocol that the brokers speak, with their versions."""
    from millstream.cluster import brokers

    rows = brokers.list_apis(resolve(bootstrap, context))
    columns = [Column("name", "API"), Column("key", "KEY", number=True), Column("versions", "VERSIONS")]
    show_rows([row._asdict() for row in rows], columns, json=json, empty="no APIs")


@app.command()
def metrics(
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="How long to watch for the rates.", min=0.1)
    ] = 2.0,
    metrics_url: Annotated[
        str | None,
        typer.Option("--metrics-url", metavar="URL", help="A page of Prometheus metrics to show too."),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Measure records per second, sizes and lag over an interval."""
    from millstream.cluster import metrics

    samples = metrics.scrape(metrics_url) if metrics_url is not None else None
    found = metrics.measure(resolve(bootstrap, context), interval)
    if json:
        data: dict[str, Any] = {
            **found._asdict(),
            "topics": [row._asdict() for row in found.topics],
            "groups": [row._asdict() for row in found.groups],
        }
        if samples is not None:
            data["prometheus"] = [sample._asdict() for sample in samples]
        print_json(data)
        return
    size = f"{count_text(found.brokers, 'broker')}, {count_text(found.partitions, 'partition')}"
    print(
        f"{found.records_per_second:g} records/s over {found.seconds:.1f} s; {size}, "
        f"{found.under_replicated} under-replicated, {found.offline} offline"
    )
    print()
    topics = [{**row._asdict(), "size": size_text(row.size_bytes)} for row in found.topics]
    columns = [
        Column("topic", "TOPIC"),
        Column("partitions", "PARTITIONS", number=True),
        Column("records", "RECORDS", number=True),
        Column("records_per_second", "RECORDS/S", number=True),
        Column("size", "SIZE", number=True),
    ]
    show_rows(topics, columns, json=False, empty="no topics")
    if found.groups:
        print()
        columns = [
            Column("group", "GROUP"),
            Column("state", "STATE"),
            Column("topics", "TOPICS", number=True),
            Column("lag", "LAG", number=True),
            Column("consumed_per_second", "RECORDS/S", number=True),
        ]
        show_rows([row._asdict() for row in found.groups], columns, json=False)
    if samples is not None:
        print()
        rows = [
            {"name": one.name, "labels": " ".join(f"{k}={v}" for k, v in one.labels.items()), "value": f"{one.value:g}"}
            for one in samples
        ]
        columns = [Column("name", "METRIC"), Column("labels", "LABELS"), Column("value", "VALUE", number=True)]
        show_rows(rows, columns, json=False, empty=f"no metrics at {metrics_url}")


# --- moving


@app.command()
def reassign(
    topic: Annotated[list[str], typer.Option("--topic", metavar="NAME", help="A topic to move. Repeatable.")] = [],  # noqa: B006 - typer reads defaults this way
    brokers: Annotated[
        str | None, typer.Option("--brokers", metavar="ID,ID", help="Put the topic's replicas on these brokers alone.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", metavar="N", help="How many replicas.", min=1)
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Take the moves from a JSON file in Kafka's format.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the plan as JSON in Kafka's format.")
    ] = None,
    undo: Annotated[
        Path | None, typer.Option("--undo", metavar="FILE", help="Write the plan that takes it all back.")
    ] = None,
    execute: Execute = False,
    wait: Wait = True,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Move topics to other brokers, or change their replication factor."""
    from millstream.cluster import plans

    if (plan is None) == (not topic):
        raise BadInput("give either --topic (with --brokers, --replication-factor or both), or --plan FILE")
    if plan is not None and (brokers is not None or replication_factor is not None):
        raise BadInput("--plan says all: --brokers and --replication-factor do not go with it")
    if plan is None and brokers is None and replication_factor is None:
        raise BadInput("--topic: say where to with --brokers 1,2,3, or how many replicas with --replication-factor N")
    connection = resolve(bootstrap, context)
    if plan is not None:
        found = plans.plan_file(connection, plan)
    else:
        found = plans.plan_topics(connection, topic, _broker_ids(brokers), replication_factor)
    for file, content in ((save, plans.to_json(found.moves)), (undo, plans.to_json(found.moves, undo=True))):
        if file is not None:
            write_plan(file, content)
    carry_out(connection, found, execute=execute, wait=wait, json=json, nothing="the partitions are there already")


@app.command()
def decommission(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="The broker's id.", min=0)],
    execute: Execute = False,
    wait: Wait = True,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Move every replica and leadership off a broker, so that it can be stopped for good."""
    from millstream.cluster import plans, reassignment

    connection = resolve(bootstrap, context)
    found = plans.plan_decommission(connection, broker)
    nothing = f"broker {broker} holds nothing"

    def verify() -> str:
        reassignment.wait_until_empty(connection, broker)
        return (
            f"broker {broker} holds nothing and leads nothing now; stop it before new topics are created, which may be "
            "placed on it while it runs"
        )

    carry_out(connection, found, execute=execute, wait=wait, json=json, nothing=nothing, verify=verify)


@app.command()
def balance(
    execute: Execute = False,
    wait: Wait = True,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Even out replicas and leaders over the brokers with as few moves as possible."""
    from millstream.cluster import plans

    connection = resolve(bootstrap, context)
    found = plans.plan_balance(connection)
    carry_out(connection, found, execute=execute, wait=wait, json=json, nothing="the cluster is balanced")


@app.command()
def elect(
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="Only this topic's partitions.")] = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean", help="For partitions without a leader: take one that is not in sync, and lose records."
        ),
    ] = False,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Give partitions back to their preferred leaders."""
    from millstream.cluster import elections

    connection = resolve(bootstrap, context)
    found = elections.plan_election(connection, topic, unclean=unclean)
    rows = elections.elect(connection, found, unclean=unclean) if execute else found
    columns = [
        Column("topic", "TOPIC"),
        Column("partition", "PARTITION", number=True),
        Column("leader_before", "LEADER", number=True),
        Column("leader", "NEW LEADER", number=True),
        *([Column("result", "RESULT")] if execute else []),
    ]
    every = "every partition has a leader" if unclean else "every partition is led by its preferred leader"
    show_rows([row._asdict() for row in rows], columns, json=json, empty=f"nothing to do: {every}")
    if rows and not execute and not json:
        if unclean:
            print("\nWhatever the new leader lacks is lost.")
        say_how_to_execute()
    if any(row.result not in ("elected", "not needed") for row in rows) and execute:
        raise typer.Exit(1)


@app.command()
def reassignments(
    cancel: Annotated[bool, typer.Option("--cancel", help="Take them back; with --execute it is done.")] = False,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """List the partitions that are on their way to other brokers."""
    from millstream.cluster import reassignment

    if execute and not cancel:
        raise BadInput("--execute goes with --cancel; without it there is nothing to do but look")
    connection = resolve(bootstrap, context)
    rows = reassignment.in_progress(connection)
    if cancel and execute and rows:
        reassignment.cancel(connection, rows)
    columns = [
        Column("topic", "TOPIC"),
        Column("partition", "PARTITION", number=True),
        Column("replicas", "REPLICAS"),
        Column("adding", "ADDING"),
        Column("removing", "REMOVING"),
    ]
    show_rows([row._asdict() for row in rows], columns, json=json, empty="no partition is being moved")
    if rows and cancel and not json:
        if execute:
            print(f"\n{count_text(len(rows), 'reassignment')} cancelled")
        else:
            say_how_to_execute()


def _broker_ids(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise BadInput(f"--brokers: {text!r} is not a list of broker ids, for example 1,2,3")
    ids = [int(part) for part in parts]
    if len(set(ids)) < len(ids):
        raise BadInput(f"--brokers: {text!r} names a broker twice")
    return ids

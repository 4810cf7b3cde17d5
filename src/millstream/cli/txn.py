"""`millstream txn`: the transactions of a cluster; find one that hangs, and end it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millstream.cli.options import Bootstrap, Context, Execute, Json, command_app
from millstream.cli.output import Column, done, print_json, show_rows, show_values
from millstream.cli.units import duration_text, parse_duration, time_text
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput

app = command_app("See transactions, and end those that hang.")

DEFAULT_HANGING = "15m"


@app.command("list")
def list_(
    state: Annotated[
        list[str], typer.Option("--state", metavar="STATE", help="Only in this state (Ongoing, ...). Repeatable.")
    ] = [],  # noqa: B006 - typer reads defaults this way
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="SPAN", help="Only transactions open for longer: 90s, 15m, 2h, 1d."),
    ] = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """List the transactional ids and the state of their transactions."""
    from millstream.cluster import transactions

    states = transactions.parse_states(state)
    age = parse_duration(older_than, "--older-than") if older_than is not None else None
    rows = [row._asdict() for row in transactions.list_transactions(resolve(bootstrap, context), states, age)]
    if not json:
        rows = [{**row, "age": duration_text(row["age_ms"]), "partitions": len(row["partitions"])} for row in rows]
    columns = [
        Column("transactional_id", "TRANSACTIONAL ID"),
        Column("state", "STATE"),
        Column("producer_id", "PRODUCER", number=True),
        Column("producer_epoch", "EPOCH", number=True),
        Column("coordinator", "COORDINATOR", number=True),
        Column("partitions", "PARTITIONS", number=True),
        Column("age", "OPEN FOR", number=True),
    ]
    show_rows(rows, columns, json=json, empty="no transactions")


@app.command()
def describe(
    transactional_id: Annotated[str, typer.Argument(metavar="ID", help="The transactional id.")],
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Show one transaction: state, producer, partitions and where it begins in each."""
    from millstream.cluster import transactions

    found, parts = transactions.describe(resolve(bootstrap, context), transactional_id)
    starts = {f"{part.topic}-{part.partition}": part for part in parts}
    rows = [_partition(name, starts.get(name)) for name in found.partitions]
    if json:
        print_json({**found._asdict(), "partitions": rows})
        return
    values = {
        "transactional id": found.transactional_id,
        "state": found.state,
        "producer": f"{found.producer_id}, epoch {found.producer_epoch}",
        "coordinator": f"broker {found.coordinator}",
        "timeout": duration_text(found.timeout_ms),
        "begun": time_text(found.started_ms),
        "open for": duration_text(found.age_ms),
    }
    show_values(values, json=False)
    if rows:
        print()
        shown = [{**row, "last_record": time_text(row["last_timestamp_ms"])} for row in rows]
        columns = [
            Column("partition", "PARTITION"),
            Column("start_offset", "BEGINS AT OFFSET", number=True),
            Column("last_record", "LAST RECORD (UTC)"),
        ]
        show_rows(shown, columns, json=False)


def _partition(name: str, part: Any) -> dict[str, Any]:
    start, last = (part.start_offset, part.last_timestamp_ms) if part is not None else (None, None)
    return {"partition": name, "start_offset": start, "last_timestamp_ms": last}


_OPEN_COLUMNS = [
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", number=True),
    Column("producer_id", "PRODUCER", number=True),
    Column("producer_epoch", "EPOCH", number=True),
    Column("start_offset", "BEGINS AT", number=True),
    Column("idle", "IDLE FOR", number=True),
    Column("transactional_id", "TRANSACTIONAL ID"),
]


@app.command()
def hanging(
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="Only this topic's partitions.")] = None,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="SPAN",
            help="Without a record for longer; at least the longest transaction timeout.",
        ),
    ] = DEFAULT_HANGING,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Find transactions that are open in a partition and that no coordinator will end (exit code 1)."""
    from millstream.cluster import transactions

    idle = parse_duration(older_than, "--older-than")
    found = transactions.find_hanging(resolve(bootstrap, context), topic, idle)
    rows = [{**row._asdict(), "idle": duration_text(row.idle_ms)} for row in found]
    show_rows([row._asdict() for row in found] if json else rows, _OPEN_COLUMNS, json=json, empty="none hangs")
    if found:
        if not json:
            first = found[0]
            print(
                f"\nEach holds back the consumers that read committed records. To end the first: millstream txn abort "
                f"--topic {first.topic} --partition {first.partition} --producer-id {first.producer_id} --execute"
            )
        raise typer.Exit(1)


@app.command()
def abort(
    transactional_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The transactional id; its producer is shut out (fenced).")
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="Instead of an id: the topic where it hangs.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="N", help="The partition where it hangs.", min=0)
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option("--producer-id", metavar="N", help="The producer whose transaction it is.", min=0)
    ] = None,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Abort a transaction: by its id, or where it hangs in a partition."""
    where = (topic, partition, producer_id)
    if transactional_id is not None and where == (None, None, None):
        _abort_by_id(bootstrap, context, transactional_id, execute=execute, json=json)
    elif transactional_id is None and topic is not None and partition is not None and producer_id is not None:
        _abort_in_partition(bootstrap, context, topic, partition, producer_id, execute=execute, json=json)
    else:
        raise BadInput("give either a transactional id, or all of --topic, --partition and --producer-id")


def _abort_by_id(
    bootstrap: str | None, context: str | None, transactional_id: str, *, execute: bool, json: bool
) -> None:
    from millstream.cluster import transactions

    connection = resolve(bootstrap, context)
    found, _ = transactions.describe(connection, transactional_id)
    is_open = found.state in transactions.OPEN_STATES
    name, where = found.transactional_id, ", ".join(found.partitions) or "no partition"
    if execute and is_open:
        transactions.abort_by_id(connection, found)
        sentence = f"{name} is aborted, and its producer {found.producer_id} is shut out"
    elif is_open:
        sentence = (
            f"{name} is {found.state} for {duration_text(found.age_ms)}, in {where}. "
            f"--execute aborts it and shuts out its producer {found.producer_id}, epoch {found.producer_epoch}."
        )
    else:
        sentence = f"nothing to do: {name} has no open transaction ({found.state})"
    done(sentence, json=json, **found._asdict(), aborted=execute and is_open)


def _abort_in_partition(
    bootstrap: str | None,
    context: str | None,
    topic: str,
    partition: int,
    producer_id: int,
    *,
    execute: bool,
    json: bool,
) -> None:
    from millstream.cluster import transactions

    connection = resolve(bootstrap, context)
    (found,) = transactions.open_in(connection, topic, partition, producer_id)
    what = f"the transaction of producer {producer_id} in {topic}-{partition}"
    if execute:
        transactions.abort_in_partition(connection, found)
        sentence = f"{what} is aborted"
    else:
        sentence = (
            f"{what} began at offset {found.start_offset} and is idle for {duration_text(found.idle_ms)}. "
            "--execute writes an abort marker there."
        )
    done(sentence, json=json, **found._asdict(), aborted=execute)

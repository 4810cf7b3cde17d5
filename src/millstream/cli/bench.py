"""`millstream bench`: how fast a cluster is, measured with real clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.interrupts import INTERRUPTED, interruptible
from millstream.cli.options import Bootstrap, Context, Json, command_app
from millstream.cli.output import fail, print_json, warn

if TYPE_CHECKING:
    from millstream.cluster.bench import Result, Settings

app = command_app("Measure a cluster.")

Records = Annotated[
    int | None,
    typer.Option("--records", min=1, help="Stop after so many records. [default: 1000000, or none with --seconds]"),
]
LatencyRecords = Annotated[
    int | None,
    typer.Option("--records", min=1, help="Stop after so many records. [default: 5000, or none with --seconds]"),
]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0.1, help="Stop after so long. [default: no limit]")]
Size = Annotated[str, typer.Option("--size", metavar="SIZE", help="Of a record: 100B, 1KB, 1MiB.")]
Rate = Annotated[float, typer.Option("--rate", min=0.0, help="Records a second; 0: as fast as it goes.")]
Acks = Annotated[str, typer.Option("--acks", metavar="0|1|all", help="What the producer waits for.")]
Compression = Annotated[
    str, typer.Option("--compression", metavar="none|gzip|snappy|lz4|zstd", help="How the producer compresses.")
]
Linger = Annotated[float, typer.Option("--linger", min=0.0, help="Milliseconds that a batch waits to become full.")]
Keys = Annotated[int, typer.Option("--keys", min=0, help="Number of different keys; 0: records without a key.")]
Clients = Annotated[int, typer.Option("--clients", min=1, max=64, help="Clients, each in a process of its own.")]
Partitions = Annotated[int, typer.Option("--partitions", min=1, help="Of the temporary topic.")]
Replication = Annotated[
    int | None, typer.Option("--replication-factor", min=1, help="Of the temporary topic. [default: the cluster's own]")
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", help="Use this topic and keep it. [default: a temporary one, removed at the end]"),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it on a cluster that is not on this machine, without asking.")]


@app.command("produce")
def produce(
    bootstrap: Bootstrap = None,
    context: Context = None,
    records: Records = None,
    seconds: Seconds = None,
    size: Size = "1KB",
    rate: Rate = 0.0,
    acks: Acks = "all",
    compression: Compression = "none",
    linger: Linger = 5.0,
    keys: Keys = 0,
    clients: Clients = 1,
    partitions: Partitions = 1,
    replication_factor: Replication = None,
    topic: Topic = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Measure how many records producers get acknowledged, and how long each takes."""
    settings = _settings(
        "produce", records, seconds, size, rate, acks, compression, linger, keys, clients, partitions,
        replication_factor, topic,
    )  # fmt: skip
    _bench(bootstrap, context, settings, yes=yes, json=json)


@app.command("consume")
def consume(
    bootstrap: Bootstrap = None,
    context: Context = None,
    records: Records = None,
    seconds: Seconds = None,
    size: Size = "1KB",
    compression: Compression = "none",
    clients: Clients = 1,
    partitions: Partitions = 1,
    replication_factor: Replication = None,
    topic: Topic = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Measure how fast consumers read: a topic that is filled first, or what --topic holds."""
    if topic is None and records is None:
        records = DEFAULT_RECORDS
    settings = _settings(
        "consume", records, seconds, size, 0.0, "all", compression, 5.0, 0, clients, partitions, replication_factor,
        topic,
    )  # fmt: skip
    _bench(bootstrap, context, settings, yes=yes, json=json)


@app.command("latency")
def latency(
    bootstrap: Bootstrap = None,
    context: Context = None,
    records: LatencyRecords = None,
    seconds: Seconds = None,
    size: Size = "100B",
    rate: Rate = 0.0,
    acks: Acks = "all",
    compression: Compression = "none",
    clients: Clients = 1,
    replication_factor: Replication = None,
    topic: Topic = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Measure the time from producing a record to consuming it, one record at a time."""
    if records is None and seconds is None:
        records = 5000
    settings = _settings(
        "latency", records, seconds, size, rate, acks, compression, 0.0, 0, clients, 1, replication_factor, topic
    )
    _bench(bootstrap, context, settings, yes=yes, json=json)


DEFAULT_RECORDS = 1_000_000
_ACKS = ("0", "1", "all")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _settings(
    kind: Any,
    records: int | None,
    seconds: float | None,
    size: str,
    rate: float,
    acks: str,
    compression: str,
    linger: float,
    keys: int,
    clients: int,
    partitions: int,
    replication_factor: int | None,
    topic: str | None,
) -> Settings:
    from millstream.cluster.bench import Settings
    from millstream.cluster.capacity import parse_size
    from millstream.cluster.errors import BadInput

    if acks not in _ACKS:
        raise BadInput(f"--acks: {acks!r} is none of {', '.join(_ACKS)}")
    if compression not in _CODECS:
        raise BadInput(f"--compression: {compression!r} is none of {', '.join(_CODECS)}")
    if records is None:
        records = 0 if seconds else DEFAULT_RECORDS
    return Settings(
        kind, records, seconds or 0.0, int(parse_size(size, "--size")), rate, acks, compression, linger, keys, clients,
        partitions, replication_factor or -1, topic,
    )  # fmt: skip


def _bench(bootstrap: str | None, context: str | None, settings: Settings, *, yes: bool, json: bool) -> None:
    from millstream.cluster.bench import is_loopback, run
    from millstream.cluster.contexts import resolve

    connection = resolve(bootstrap, context)
    connection.check()
    intention = describe(settings, connection.bootstrap)
    if not is_loopback(connection) and not yes:
        _ask(intention)
    elif not json:
        print(intention)
    try:
        with interruptible() as check, _progress(settings, quiet=json) as progress:
            result = run(connection, settings, progress=progress, check=check)
    except KeyboardInterrupt:
        fail("stopped before anything was measured", INTERRUPTED)
    if json:
        print_json({"bootstrap": connection.bootstrap, "settings": settings._asdict(), **result._asdict()})
    else:
        _show(result)
    if result.failures:
        fail(f"{result.failures:,} records failed: {result.failure}")
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)


def _ask(intention: str) -> None:
    """This is load on a cluster that others may use."""
    if not sys.stdin.isatty():
        fail(f"{intention} That is not on this machine: --yes if you mean it", 2)
    print(intention)
    if not typer.confirm("That is not on this machine. Go on?"):
        fail("not done", 1)


def describe(settings: Settings, bootstrap: str) -> str:
    """What will happen, in one sentence."""
    amount = f"{settings.records:,} records" if settings.records else "as many records as it can"
    within = f" within {settings.seconds:g} s" if settings.seconds else ""
    pace = f" at {settings.rate:,.0f} records/s" if settings.rate else ""
    where = f"the topic {settings.topic}" if settings.topic else "a temporary topic"
    clients = _plural(settings.clients, "client")
    each = f"of {settings.size:,} B"
    if settings.kind == "consume":
        filled = (
            ""
            if settings.topic
            else f", filled first with records {each} in {_plural(settings.partitions, 'partition')}"
        )
        return f"Consumes {amount}{within} with {clients} from {where}{filled}, at {bootstrap}."
    how = f"acks={settings.acks}, compression {settings.compression}"
    verb = "Sends" if settings.kind == "produce" else "Sends and reads back, one at a time,"
    return f"{verb} {amount} {each}{within}{pace} with {clients} ({how}) to {where} at {bootstrap}."


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def _progress(settings: Settings, *, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda what, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} records"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=settings.records or None)
            bars.update(tasks[what], completed=done)

        yield report


def _show(result: Result) -> None:
    print()
    print(f"records/s  {result.records_per_second:>12,.0f}")
    print(f"MB/s       {result.megabytes_per_second:>12,.1f}")
    print(f"records    {result.records:>12,}  in {result.seconds:.2f} s with {_plural(result.clients, 'client')}")
    times = {"acknowledged": result.acknowledged_ms, "consumed": result.end_to_end_ms}
    rows = {name: found for name, found in times.items() if found}
    if rows:
        print(f"\n{'milliseconds':<14}{'p50':>10}{'p95':>10}{'p99':>10}{'max':>10}")
    for name, found in rows.items():
        print(f"{name:<14}" + "".join(f"{found[key]:>10,.2f}" for key in ("p50", "p95", "p99", "max")))
    if result.interrupted:
        warn("stopped; these are the figures until then")

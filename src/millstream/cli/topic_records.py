"""`millstream topic produce|consume|tail`: records of a topic in and out, for people and for pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from millstream.cli import record_format
from millstream.cli.options import Bootstrap, Context, Json
from millstream.cli.output import fail, print_json, warn
from millstream.cli.progress import Progress
from millstream.cluster import records_in, records_out
from millstream.cluster.connection import Connection
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput
from millstream.cluster.filters import compile_filter
from millstream.cluster.positions import Position, parse_position
from millstream.cluster.records_out import GroupReader, Hooks, Reader, Record

Name = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="N,...", help="Only these partitions; repeatable. [default: all]"),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="EXPR",
        help="Only records for which this holds, for example 'value.campaignId == 3 and key != null'; names are key, "
        "value, headers, topic, partition, offset and timestamp; functions contains, startswith, endswith, matches, "
        "lower, upper, len, number and time.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="json|raw|TEMPLATE",
        help="json: an object a line; raw: the value's bytes; or a template such as "
        "'{partition}/{offset} {time} {key} {value.user}\\n'. [default: a readable line]",
    ),
]
Isolation = Annotated[
    str,
    typer.Option(
        "--isolation",
        metavar="LEVEL",
        help="read_uncommitted shows records of open and aborted transactions too, read_committed does not.",
    ),
]
Count = Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="End after this many records.")]


def produce(
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read records here. [default: standard input]")
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="text|json",
            help="text: a value a line; json: an object a line with value, key, headers, partition and timestamp.",
        ),
    ] = "text",
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", metavar="TEXT", help=r"What stands between key and value; \t is a tab."),
    ] = None,
    headers_separator: Annotated[
        str | None,
        typer.Option(
            "--headers-separator",
            metavar="TEXT",
            help=r"Lines begin with headers, name=value,name=value, and this after them; \t is a tab.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="The key of all records.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header of all records; repeatable.")
    ] = None,
    null_value_marker: Annotated[
        str | None,
        typer.Option(
            "--null-value-marker", metavar="TEXT", help="A value that is this text becomes null (a tombstone)."
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Send all records to this partition.")
    ] = None,
    partitioner: Annotated[
        str,
        typer.Option(
            "--partitioner",
            metavar="NAME",
            help="How a key finds its partition: murmur2_random (as Java clients do), murmur2, consistent, "
            "consistent_random, fnv1a, fnv1a_random, random.",
        ),
    ] = records_in.PARTITIONERS[0],
    acks: Annotated[str, typer.Option("--acks", metavar="all|1|0", help="Which replicas must have a record.")] = "all",
    compression: Annotated[
        str, typer.Option("--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="At most this many records a second.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Give a record up after this long.")
    ] = 30.0,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Write records to a topic: one for each line of the input."""
    _one_of("--format", format, ("text", "json"))
    _one_of("--partitioner", partitioner, records_in.PARTITIONERS)
    _one_of("--acks", acks, records_in.ACKS)
    _one_of("--compression", compression, records_in.COMPRESSIONS)
    if rate is not None and rate <= 0:
        raise BadInput(f"--rate: {rate:g} is not a number above 0")
    if format == "json" and (key_separator is not None or headers_separator is not None):
        raise BadInput("--key-separator and --headers-separator are for --format text: JSON says what is the key")
    if key is not None and key_separator is not None:
        raise BadInput("--key and --key-separator both give the key: give one of them")
    form = records_in.LineFormat(
        format == "json",
        _separator("--key-separator", key_separator),
        _separator("--headers-separator", headers_separator),
        _encoded(key),
        records_in.parse_headers(header or (), "--header"),
        _encoded(null_value_marker),
    )
    options = records_in.Options(partitioner, partition, acks, compression, rate, timeout)
    connection = resolve(bootstrap, context)
    with _opened(file) as lines:
        if lines is sys.stdin.buffer and sys.stdin.isatty():
            warn("a record a line; Ctrl-D ends")
        with Progress("produced") as progress:
            delivered, stopped = records_in.produce(
                connection, name, records_in.parse_lines(lines, form), options, progress.records
            )
    _tell_delivered(name, delivered, stopped, json=json)


def consume(
    name: Name,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION",
            help="Where to begin: beginning, end, an offset, -N for the last N of each partition, a time "
            "(2026-05-01T12:00 in UTC, @MILLISECONDS), 15m for 15 minutes ago. [default: beginning]",
        ),
    ] = None,
    partition: Partitions = None,
    count: Count = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            help="Read as a member of this consumer group and commit; --from is for where it has no position yet.",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new records. [default: end at the end of the topic]")
    ] = False,
    filter: Filter = None,
    format: Format = None,
    isolation: Isolation = records_out.ISOLATIONS[0],
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Read records of a topic, up to its end as it is now, or on with --follow."""
    _one_of("--isolation", isolation, records_out.ISOLATIONS)
    start = parse_position(from_ or "beginning", "--from")
    partitions = partition_numbers(partition)
    output = _Output(filter, format, count, json=json)
    connection = resolve(bootstrap, context)
    if group is None:
        reader: Reader | GroupReader = Reader(
            connection, name, start, partitions=partitions, isolation=isolation, hooks=output.hooks
        )
    else:
        reader = _group_reader(connection, name, group, start, partitions, isolation, output.hooks)
    with _until_interrupted(reader, output):
        if not follow or isinstance(reader, Reader):
            output.take(reader.to_end())
        if follow and not output.full:
            output.take(reader.onward())


def tail(
    name: Name,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, metavar="N", help="Show the last N records first.")
    ] = 10,
    partition: Partitions = None,
    count: Count = None,
    filter: Filter = None,
    format: Format = None,
    isolation: Isolation = records_out.ISOLATIONS[0],
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Show the last records of a topic, then new ones as they come, until Ctrl-C."""
    _one_of("--isolation", isolation, records_out.ISOLATIONS)
    output = _Output(filter, format, count, json=json)
    reader = Reader(
        resolve(bootstrap, context),
        name,
        Position("last", lines),
        partitions=partition_numbers(partition),
        isolation=isolation,
        hooks=output.hooks,
    )
    with _until_interrupted(reader, output):
        last = sorted(reader.to_end(), key=lambda record: (record.timestamp, record.partition, record.offset))
        output.take(last[len(last) - lines if len(last) > lines else 0 :])
        if not output.full:
            output.take(reader.onward())


class _Output:
    """Prints the records that are wanted, and knows when there are enough."""

    def __init__(self, expression: str | None, form: str | None, count: int | None, *, json: bool) -> None:
        self._wanted = None if expression is None else compile_filter(expression)
        self._render = record_format.renderer(form, json=json)
        self._count = count
        self.shown = 0
        self.read = 0

    @property
    def full(self) -> bool:
        return self._count is not None and self.shown >= self._count

    @property
    def hooks(self) -> Hooks:
        """Records are seen at the latest when the reader waits for more."""
        return Hooks(warn, sys.stdout.buffer.flush)

    def take(self, records: Iterable[Record]) -> None:
        out = sys.stdout.buffer
        try:
            for record in records:
                self.read += 1
                if self._wanted is None or self._wanted(record.names()):
                    self.shown += 1
                    out.write(self._render(record))
                    if self.full:
                        return
        finally:
            out.flush()


@contextlib.contextmanager
def _until_interrupted(reader: Reader | GroupReader, output: _Output) -> Iterator[None]:
    """Ctrl-C, or nobody reading our output any more, is a good end; the summary goes to standard error."""
    interrupted = False
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
    finally:
        reader.close()
    if interrupted or sys.stderr.isatty():
        of = f" of {output.read:,} read" if output.read != output.shown else ""
        warn(f"{output.shown:,} record{'' if output.shown == 1 else 's'}{of}")


def _group_reader(
    connection: Connection, topic: str, group: str, start: Position, partitions: list[int], isolation: str, hooks: Hooks
) -> GroupReader:
    if partitions:
        raise BadInput("--partition cannot go with --group: the group says which partitions a member reads")
    if start.kind not in ("beginning", "end"):
        raise BadInput(
            "--from must be beginning or end with --group, for partitions where the group has no position yet "
            f"(`millstream group seek {group} --topic {topic} --to ...` moves a group anywhere)"
        )
    return GroupReader(connection, topic, group, start, isolation=isolation, hooks=hooks)


def _tell_delivered(
    topic: str, delivered: records_in.Delivered, stopped: BadInput | KeyboardInterrupt | None, *, json: bool
) -> None:
    rate = delivered.records / delivered.seconds if delivered.seconds else 0.0
    if json:
        partitions = [
            {"partition": partition, "records": records, "first_offset": first, "last_offset": last}
            for partition, records, first, last in delivered.partitions
        ]
        facts: dict[str, Any] = {"topic": topic, **delivered._asdict(), "per_second": round(rate, 1)}
        print_json({**facts, "seconds": round(delivered.seconds, 3), "partitions": partitions})
    else:
        where = ", ".join(str(partition) for partition, *_ in delivered.partitions[:8])
        more = ", ..." if len(delivered.partitions) > 8 else ""
        into = f" to partition{'s' if len(delivered.partitions) > 1 else ''} {where}{more}" if where else ""
        print(
            f"produced {delivered.records:,} record{'' if delivered.records == 1 else 's'}{into} of {topic}: "
            f"{delivered.bytes:,} bytes in {delivered.seconds:.2f} s, {rate:,.0f}/s"
        )
    if delivered.failed:
        fail(f"{delivered.failed:,} not delivered, {delivered.records:,} delivered: {delivered.error}")
    if isinstance(stopped, BadInput):
        raise BadInput(f"{stopped} ({delivered.records:,} records before it were delivered)")


def partition_numbers(texts: Iterable[str] | None) -> list[int]:
    """`--partition 0,2 --partition 5`."""
    numbers = []
    for text in texts or ():
        for part in text.split(","):
            if not part.strip().isdecimal() or len(part) > 9:
                raise BadInput(f"--partition: {text!r} must be partition numbers, for example 0 or 0,2,5")
            numbers.append(int(part))
    return numbers


def _one_of(option: str, value: str, allowed: Iterable[str]) -> None:
    from millstream.cluster.answers import nearest

    if value not in allowed:
        raise BadInput(f"{option}: {value!r} is none of {', '.join(allowed)}{nearest(value, allowed)}")


def _separator(option: str, text: str | None) -> bytes | None:
    if text == "":
        raise BadInput(f"{option}: it is empty; give at least one character")
    return None if text is None else record_format.unescape(text).encode()


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@contextlib.contextmanager
def _opened(file: Path | None) -> Iterator[IO[bytes]]:
    if file is None or str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise BadInput(f"--file: {file} cannot be read: {error.strerror}") from error
    with stream:
        yield stream

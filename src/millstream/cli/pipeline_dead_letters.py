"""`millstream pipeline dead-letters`: records that a pipeline could not process: listed, grouped, sent back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.interrupts import INTERRUPTED, interruptible
from millstream.cli.options import Bootstrap, Context, Execute, Json
from millstream.cli.output import Column, fail, print_json, show_rows
from millstream.cli.pipeline_common import Home, Name, cluster_of, home_at
from millstream.cli.units import count_text
from millstream.cluster import local
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, NotFound
from millstream.cluster.positions import time_text
from millstream.cluster.records_out import text_of

if TYPE_CHECKING:
    from millstream.pipelines.dead_letters import DeadLetter, Wanted
    from millstream.pipelines.description.pipeline import Pipeline
    from millstream.pipelines.home import PipelineFolder
    from millstream.pipelines.redrive import Redrive

LONGEST = 80
LETTERS = (
    Column("place", "letter", whole=True),
    Column("time", "time", whole=True),
    Column("stage", "stage", whole=True),
    Column("error", "error", whole=True),
    Column("message", "message"),
    Column("origin", "origin", whole=True),
    Column("redriven", "re-driven", number=True),
    Column("value", "value"),
)
CAUSES = (
    Column("cause", "cause", whole=True),
    Column("letters", "letters", number=True),
    Column("stage", "stage", whole=True),
    Column("error", "error", whole=True),
    Column("message", "message"),
    Column("first", "first", whole=True),
    Column("last", "last", whole=True),
    Column("example", "example", whole=True),
)


def dead_letters(
    name: Name,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="The dead-letter topic. [default: the pipeline's]")
    ] = None,
    by_cause: Annotated[bool, typer.Option("--by-cause", help="Group them by cause, the most frequent first.")] = False,
    redrive: Annotated[
        bool, typer.Option("--redrive", help="Send the records back to where they came from; with --execute.")
    ] = False,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOPIC", help="With --redrive: send them all to this topic.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", metavar="STAGE", help="Only of this stage.")] = None,
    error: Annotated[str | None, typer.Option("--error", metavar="ERROR", help="Only of this kind of error.")] = None,
    cause: Annotated[
        str | None, typer.Option("--cause", metavar="ID", help="Only of this cause, as --by-cause shows it.")
    ] = None,
    offsets: Annotated[
        list[str] | None,
        typer.Option(
            "--offsets",
            metavar="PARTITION:FIRST-LAST",
            help="Only these offsets of the dead-letter topic, such as 0:10-20; repeatable.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=100_000, metavar="N", help="List at most this many.")
    ] = 20,
    home: Home = None,
    execute: Execute = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """List a pipeline's dead letters, newest first; group them by cause; or send the records back, each once."""
    from millstream.pipelines import dead_letters as letters

    if by_cause and redrive:
        raise BadInput("--by-cause and --redrive: give one of them")
    if (execute or to) and not redrive:
        raise BadInput("--execute and --to are for --redrive")
    folder = home_at(home).pipeline(name)
    pipeline = _described_if_known(name, folder)
    from_topic = topic or (pipeline.dead_letter_topic if pipeline is not None else f"{name}-dead-letters")
    connection = cluster_of(folder, bootstrap, context)
    ranges = letters.parse_offsets(offsets, "--offsets") if offsets else None
    wanted = letters.Wanted(name, stage, error, cause, ranges)
    try:
        if redrive:
            _redrive(connection, from_topic, name, wanted, to, pipeline, folder, execute=execute, json=json)
        elif by_cause:
            _show_causes(connection, from_topic, wanted, json=json)
        else:
            found = letters.newest(connection, from_topic, wanted, count)
            if json:
                print_json([letters.as_json(letter) for letter in found])
            else:
                show_rows(list(map(_letter_row, found)), LETTERS, json=False, empty=f"no dead letters in {from_topic}")
    except NotFound:
        if topic is not None or folder.run() is None:
            raise
        show_rows([], LETTERS, json=json, empty=f"no dead letters: there is no topic {from_topic} yet")


def _described_if_known(name: str, folder: PipelineFolder) -> Pipeline | None:
    """The pipeline as its file has it now; None if it was not run here, or its file cannot be read any more."""
    from millstream.pipelines.description.reader import read
    from millstream.pipelines.errors import PipelineError

    run = folder.run()
    if run is None or run.file is None:
        return None
    try:
        return next((pipeline for pipeline in read(Path(run.file)) if pipeline.name == name), None)
    except PipelineError:
        return None


def _show_causes(connection: Connection, topic: str, wanted: Wanted, *, json: bool) -> None:
    from millstream.pipelines import dead_letters as letters

    found, others = letters.causes(filter(wanted.takes, letters.read(connection, topic)))
    rows: list[dict[str, Any]] = [
        {
            "cause": cause.key.id,
            "letters": cause.letters,
            "stage": cause.key.stage,
            "error": cause.key.error,
            "message": cause.key.message,
            "first": time_text(cause.first),
            "last": time_text(cause.last),
            "example": f"{cause.example.partition}:{cause.example.offset}",
        }
        for cause in found
    ]
    show_rows(rows, CAUSES, json=json, empty=f"no dead letters in {topic}")
    if others and not json:
        print(f"and {count_text(others, 'letter')} of further causes")


def _redrive(
    connection: Connection,
    topic: str,
    name: str,
    wanted: Wanted,
    to: str | None,
    pipeline: Pipeline | None,
    folder: PipelineFolder,
    *,
    execute: bool,
    json: bool,
) -> None:
    from millstream.pipelines.redrive import Redriver

    redriver = Redriver(connection, topic, name, wanted, to=to, clusters=_elsewhere(pipeline))
    if execute:
        lock = local.take_lock(folder.path / "redrive")  # two at a time would send some twice
        if lock is None:
            fail(f"the dead letters of {name} are being sent back by another command just now")
        try:
            with interruptible() as check:
                result = redriver.execute(check)
        except KeyboardInterrupt:
            fail("stopped; what was sent is remembered, and the same command goes on", INTERRUPTED)
        finally:
            os.close(lock)
    else:
        result = redriver.plan()
    if json:
        left = [entry._asdict() for entry in result.left]
        print_json({"executed": execute, "sent": result.sent, "left": left})
        return
    _tell_redrive(result, executed=execute)


def _tell_redrive(result: Redrive, *, executed: bool) -> None:
    word = "sent" if executed else "would be sent"
    for target, records in result.sent.items():
        print(f"{count_text(records, 'record')} {word} to {target}")
    for entry in result.left:
        more = ", ..." if entry.letters > len(entry.places) else ""
        print(f"{count_text(entry.letters, 'letter')} stay: {entry.why} (at {', '.join(entry.places)}{more})")
    if not result.total:
        print("there is nothing to send")
    elif not executed:
        print("nothing was sent yet; --execute does it")


def _elsewhere(pipeline: Pipeline | None) -> dict[str, Connection]:
    """The topics that the pipeline reads from other clusters than its own."""
    from millstream.pipelines.description.sources import TopicSource
    from millstream.pipelines.offsets import topic_names

    found: dict[str, Connection] = {}
    for source in pipeline.named_sources.values() if pipeline is not None else ():
        if isinstance(source, TopicSource) and source.bootstrap is not None:
            connection = Connection(source.bootstrap)
            found |= dict.fromkeys(topic_names(connection, source.topics, source.pattern), connection)
    return found


def _letter_row(letter: DeadLetter) -> dict[str, Any]:
    origin = letter.origin
    place = None if origin is None else origin.topic
    if origin is not None and origin.is_record:
        place = f"{origin.topic}-{origin.partition}:{origin.offset}"
    return {
        "place": f"{letter.partition}:{letter.offset}",
        "time": time_text(letter.time),
        "stage": letter.stage,
        "error": letter.error,
        "message": _short(letter.message),
        "origin": place,
        "redriven": letter.redriven or None,
        "value": _short(text_of(letter.value)),
    }


def _short(text: str | None) -> str | None:
    one_line = None if text is None else " ".join(text.split())
    return one_line if one_line is None or len(one_line) <= LONGEST else one_line[: LONGEST - 3] + "..."

"""`millstream log dump`: the files of a log, readable, and what is wrong with them. Needs no cluster.

A file is shown entry by entry as it is read; a folder as a table of its files. Problems go to standard output too,
since they are what was asked for; the exit code is 1 if there are any.
"""

from __future__ import annotations

import json as json_
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.log_records import DECODERS, Decoder, decoder_of
from millstream.cli.options import Json, command_app
from millstream.cli.output import Column, show_rows
from millstream.cli.units import count_text, size_text, time_text
from millstream.cluster.errors import BadInput, NotFound

if TYPE_CHECKING:
    from millstream.log.dump import Dump
    from millstream.log.dump_items import BatchEntry, Item, RecordEntry

app = command_app("Look into the files of a log.")


@app.callback()
def _group() -> None:
    """Look into the files of a log."""


@app.command()
def dump(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file of a log, a partition's folder, or a whole data folder.")
    ],
    records: Annotated[bool, typer.Option("--records", help="Show the records in the batches.")] = False,
    decode: Annotated[
        str | None,
        typer.Option(
            "--decode", metavar="WHAT", help="Read the records of an internal topic: offsets or transactions."
        ),
    ] = None,
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Check headers and CRCs only; do not open the records.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the batches, index entries or other content of log files, and find damage (exit code 1)."""
    from millstream.log import dump as dumping

    if decode is not None and decode not in DECODERS:
        raise BadInput(f"--decode: {decode!r} is not known; it is one of {', '.join(DECODERS)}")
    if shallow and (records or decode is not None):
        raise BadInput("--shallow leaves the records closed, so it does not go with --records or --decode")
    records = records or decode is not None
    decoder = decoder_of(decode) if decode is not None else None
    if not path.exists():
        raise NotFound(f"{path} does not exist")
    files = dumping.files_in(path) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"{path} has no files of a log in it")
    problems = 0
    try:
        if json:
            problems = _show_json(files, decoder, records=records, shallow=shallow)
        elif path.is_dir() and not records:
            problems = _show_folder(path, files, shallow=shallow)
        else:
            for number, opened in enumerate(_opened(files, records=records, shallow=shallow)):
                if number:
                    print()
                problems += _show_file(opened, decoder)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise BadInput(f"{error.filename or path} cannot be read: {error.strerror}") from error
    if problems:
        raise typer.Exit(1)


def _opened(files: list[Path], *, records: bool = False, shallow: bool = False) -> Iterator[Dump]:
    """The files, one after the other; of several, those that a running server has removed meanwhile are left out."""
    from millstream.log import dump as dumping

    for file in files:
        try:
            found = dumping.dump(file, records=records, shallow=shallow)
            first = list(islice(found.items, 1))  # the file is opened now
        except FileNotFoundError:
            if len(files) == 1:
                raise
            continue
        yield found._replace(items=chain(first, found.items))


# --- for people


def _show_file(opened: Dump, decoder: Decoder | None) -> int:
    from millstream.log.dump_items import BatchEntry, Problem, RecordEntry

    print(f"{opened.path}: {opened.kind}, {size_text(opened.size)}")
    width = shutil.get_terminal_size((140, 24)).columns
    problems = entries = found = 0
    heading = None
    for item in opened.items:
        if isinstance(item, Problem):
            problems += 1
            print(_problem(item.position, item.text))
            continue
        if isinstance(item, RecordEntry):
            found += 1
            for line in _record_lines(item, decoder):
                print(line)
            continue
        if heading is None:
            heading = _heading(item)
            print(heading)
        entries += 1
        for line in _batch_lines(item, width) if isinstance(item, BatchEntry) else [_plain_line(item)]:
            print(line)
    of_batches = opened.kind in ("segment", "metadata snapshot")
    counts = [count_text(entries, "batch", "batches") if of_batches else count_text(entries, "entry", "entries")]
    if found:
        counts.append(count_text(found, "record"))
    counts.append(count_text(problems, "problem") if problems else "no damage")
    print(", ".join(counts))
    return problems


_BATCH = "{:>10} {:>15} {:>7} {:>8} {:<23} {:<6} {:>5}"


def _heading(item: Item) -> str:
    from millstream.log.dump_items import BatchEntry

    if isinstance(item, BatchEntry):
        return _BATCH.format("POSITION", "OFFSETS", "RECORDS", "BYTES", "MAX TIMESTAMP (UTC)", "CODEC", "EPOCH")
    return "  ".join(_cell(name, _label(name)) for name in item._fields)


def _batch_lines(batch: BatchEntry, width: int) -> Iterator[str]:
    offsets = (
        f"{batch.base_offset}-{batch.last_offset}" if batch.last_offset != batch.base_offset else batch.base_offset
    )
    time = time_text(batch.max_timestamp) if batch.max_timestamp >= 0 else "-"
    line = _BATCH.format(
        batch.position, offsets, batch.record_count, batch.size, time or "-", batch.compression, batch.leader_epoch
    )
    more = []
    if batch.producer_id >= 0:
        sequence = f" seq {_span(batch.base_sequence, batch.last_sequence)}" if batch.base_sequence >= 0 else ""
        more.append(f"producer {batch.producer_id}/{batch.producer_epoch}{sequence}")
    if batch.transactional:
        more.append("transactional")
    if batch.control is not None:
        more.append(batch.control)
    if batch.timestamp_type == "LogAppendTime":
        more.append("append time")
    if batch.delete_horizon_ms is not None:
        more.append(f"delete horizon {time_text(batch.delete_horizon_ms)}")
    if batch.magic != 2:
        more.append(f"format {batch.magic}, not opened")
    if batch.crc_ok is False:
        more.append("BAD CRC")
    details = ", ".join(more)
    if not details or len(line) + 2 + len(details) <= width:
        yield f"{line}  {details}".rstrip()
    else:
        yield line
        yield f"{'':>11}{details}"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _record_lines(record: RecordEntry, decoder: Decoder | None) -> Iterator[str]:
    decoded = decoder(record.key, record.value) if decoder is not None else None
    time = time_text(record.timestamp) if record.timestamp >= 0 else "-"
    start = f"{'':>11}{record.offset:>8}  {time}  "
    if decoded is not None:
        key, value = (json_.dumps(decoded[part], default=str) for part in ("key", "value"))
        yield f"{start}{decoded['type']} {key} = {value}"
    else:
        yield f"{start}key {_text(record.key)}  value {_text(record.value)}"
    for name, content in record.headers:
        yield f"{'':>21}header {_text(name)} = {_text(content)}"


def _text(data: bytes | None) -> str:
    """As it reads, in quotes if it is text; else in hexadecimal."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return json_.dumps(text, ensure_ascii=False) if text.isprintable() or "\n" in text else f"0x{data.hex()}"


_LABELS = {
    "segment_position": "IN SEGMENT",
    "timestamp": "TIMESTAMP (UTC)",
    "producer_id": "PRODUCER",
    "producer_epoch": "EPOCH",
    "last_sequence": "LAST SEQ",
    "offset_delta": "DELTA",
    "coordinator_epoch": "COORDINATOR",
    "open_transaction_offset": "OPEN FROM",
}
_LEFT = ("name", "topic")


def _plain_line(item: Item) -> str:
    cells = []
    for name, value in item._asdict().items():
        shown = "-" if value is None else time_text(value) if name == "timestamp" and value >= 0 else value
        cells.append(_cell(name, shown))
    return "  ".join(cells).rstrip()


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " ").upper())


def _cell(name: str, shown: object) -> str:
    if name == "value":
        return str(shown)
    width = 23 if name == "timestamp" else 20 if name in _LEFT else max(8, len(_label(name)))
    return f"{shown!s:<{width}}" if name in _LEFT else f"{shown!s:>{width}}"


def _problem(position: int | None, text: str) -> str:
    return f"{'' if position is None else position:>10} PROBLEM: {text}"


def _show_folder(root: Path, files: list[Path], *, shallow: bool) -> int:
    """One line for each file, then what is wrong."""
    from millstream.log import dump as dumping
    from millstream.log.dump_items import BatchEntry, Problem

    rows, problems = [], []
    overlap = dumping.Overlap()
    for opened in _opened(files, shallow=shallow):
        file = opened.path
        entries = count = wrong = 0
        first = last = None
        for item in opened.items:
            if isinstance(item, Problem):
                wrong += 1
                problems.append((file, item))
                continue
            entries += 1
            if isinstance(item, BatchEntry):
                count += item.record_count
                first = item.base_offset if first is None else first
                last = item.last_offset
        if opened.kind == dumping.SEGMENT and first is not None and last is not None:
            problem = overlap.check(file, first, last)
            if problem is not None:
                wrong += 1
                problems.append((file, problem))
        rows.append(
            {
                "file": str(file.relative_to(root)),
                "size": size_text(opened.size),
                "entries": entries,
                "records": count if first is not None else None,
                "offsets": _span(first, last) if first is not None and last is not None else None,
                "state": "ok" if not wrong else f"{wrong} wrong",
            }
        )
    columns = [
        Column("file", "FILE"),
        Column("size", "SIZE", number=True),
        Column("entries", "ENTRIES", number=True),
        Column("records", "RECORDS", number=True),
        Column("offsets", "OFFSETS", number=True),
        Column("state", "STATE"),
    ]
    show_rows(rows, columns, json=False)
    print()
    for file, problem in problems:
        where = "" if problem.position is None else f" at {problem.position}"
        print(f"PROBLEM in {file.relative_to(root)}{where}: {problem.text}")
    print(f"{count_text(len(rows), 'file')}, {count_text(len(problems), 'problem') if problems else 'no damage'}")
    return len(problems)


# --- for machines


def _show_json(files: list[Path], decoder: Decoder | None, *, records: bool, shallow: bool) -> int:
    """An array of files, written while it is read."""
    from millstream.log import dump as dumping
    from millstream.log.dump_items import BatchEntry, Problem

    total = 0
    overlap = dumping.Overlap()
    out = sys.stdout
    for number, opened in enumerate(_opened(files, records=records, shallow=shallow)):
        file = opened.path
        out.write("[" if number == 0 else ",\n")
        start = {"file": str(file), "kind": opened.kind, "size": opened.size}
        out.write(json_.dumps(start)[:-1] + ', "entries": [')
        problems: list[Problem] = []
        first = last = None
        separator = ""
        for item in opened.items:
            if isinstance(item, Problem):
                problems.append(item)
                continue
            if isinstance(item, BatchEntry):
                first = item.base_offset if first is None else first
                last = item.last_offset
            out.write(separator + json_.dumps(_plain(item, decoder), default=str))
            separator = ",\n"
        if opened.kind == dumping.SEGMENT and first is not None and last is not None:
            overlapping = overlap.check(file, first, last)
            if overlapping is not None:
                problems.append(overlapping)
        out.write('], "problems": ' + json_.dumps([problem._asdict() for problem in problems]) + "}")
        total += len(problems)
    out.write("]\n")
    return total


def _plain(item: Item, decoder: Decoder | None) -> dict[str, Any]:
    from millstream.log.dump_items import RecordEntry

    data = item._asdict()
    if not isinstance(item, RecordEntry):
        return data
    for name in ("key", "value"):
        data |= _bytes(name, data.pop(name))
    data["headers"] = [{**_bytes("name", name), **_bytes("value", value)} for name, value in item.headers]
    if decoder is not None:
        data["decoded"] = decoder(item.key, item.value)
    return data


def _bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Text under the name; what is no text under `<name>_base64`."""
    try:
        return {name: data.decode() if data is not None else None}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data or b"").decode()}

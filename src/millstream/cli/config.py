"""`millstream config ...`: configs of topics and brokers, where their values come from, and changing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from millstream.cli.options import Bootstrap, Context, Json, command_app
from millstream.cli.output import Column, show_rows
from millstream.cli.units import duration_text, size_text
from millstream.cluster import configs
from millstream.cluster.answers import nearest
from millstream.cluster.connection import Connection
from millstream.cluster.contexts import resolve
from millstream.cluster.errors import BadInput

app = command_app("Configs of topics and brokers: get, set, unset.")

KINDS = ("topic", "broker")
DEFAULT = "default"
Kind = Annotated[str, typer.Argument(metavar="topic|broker", help="What has the configs.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The topic; or the broker's id, or `default` for all brokers.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Have the cluster check it; change nothing.")]
ENTRIES = (
    Column("name", "config", least=34),
    Column("value", "value", least=19),
    Column("source", "set on", whole=True),
    Column("note", "note"),
)
CHANGES = (
    Column("name", "config", whole=True),
    Column("before", "before"),
    Column("after", "after"),
    Column("source", "set on", whole=True),
)


@app.command()
def get(
    kind: Kind,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The topic; or the broker's id, or `default` for all brokers."),
    ] = None,
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY", help="Only these configs.")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show all configs, not only those that were set to something.")
    ] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Show configs with their values and where each is set."""
    _check_kind(kind)
    connection = resolve(bootstrap, context)
    if name is None and kind == "topic":
        raise BadInput("config get topic: which topic? give its NAME")
    names = configs.brokers(connection) if name is None else [name]
    rows: list[dict[str, Any]] = []
    for each in names:
        entries = configs.get(connection, kind, _resource(kind, each), keys or ())
        for entry in entries:
            if all_ or keys or entry.source != "default":
                owner = {"broker": each} if name is None else {}
                rows.append({**owner, **entry._asdict()})
    if not json:
        for row in rows:
            row["note"] = _note(row)
            row["value"] = _value(row)
    columns = ENTRIES if len(names) == 1 else (Column("broker", "broker", number=True), *ENTRIES)
    what = f"{kind} {name}" if name else "the brokers"
    show_rows(rows, columns, json=json, empty=f"{what}: nothing is set; --all shows the defaults")


@app.command("set")
def set_(
    kind: Kind,
    name: Name,
    values: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="The configs and their new values.")],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Set configs, all of them or none."""
    _check_kind(kind)
    assignments = configs.parse_assignments(values, "KEY=VALUE")
    _change(resolve(bootstrap, context), kind, name, assignments, (), dry_run=dry_run, json=json)


@app.command()
def unset(
    kind: Kind,
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="The configs to set back.")],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Set configs back to what holds when nothing is set."""
    _check_kind(kind)
    _change(resolve(bootstrap, context), kind, name, {}, keys, dry_run=dry_run, json=json)


def _change(
    connection: Connection,
    kind: str,
    name: str,
    values: dict[str, str],
    unset: Iterable[str],
    *,
    dry_run: bool,
    json: bool,
) -> None:
    resource = _resource(kind, name)
    argument = " ".join([*(f"{key}={value}" for key, value in values.items()), *unset])
    changes = configs.change(connection, kind, resource, values, unset, dry_run=dry_run, argument=argument)
    show_rows([change._asdict() for change in changes], CHANGES[: 3 if dry_run else 4], json=json)
    if dry_run and not json:
        print("\nthe cluster accepts this; nothing was changed (--dry-run)")


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise BadInput(f"{kind!r} has no configs here: it must be topic or broker{nearest(kind, KINDS)}")


def _resource(kind: str, name: str) -> str:
    return configs.DEFAULT_BROKER if kind == "broker" and name == DEFAULT else name


def _value(row: dict[str, Any]) -> str | None:
    if row["sensitive"]:
        return "(hidden)"
    value: str | None = row["value"]
    return '""' if value == "" else value


def _note(row: dict[str, Any]) -> str:
    """Times and sizes as people read them, and what cannot be changed."""
    notes = []
    name, value = row["name"], row["value"] or ""
    if value.isdecimal() and int(value) < 2**62:
        if name.endswith(".ms") and int(value) >= 1000:
            notes.append(duration_text(int(value)) or "")
        elif name.endswith(".bytes") and int(value) >= 1024:
            notes.append(size_text(int(value)) or "")
    if row["read_only"]:
        notes.append("read-only")
    return ", ".join(notes)

"""`millstream context`: clusters by name, in the file of contexts (`cluster.contexts`)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from millstream.cli.options import Json, command_app, name_values
from millstream.cli.output import Column, done, fail, show_rows, show_values
from millstream.cluster import contexts
from millstream.cluster.connection import Connection

app = command_app("Clusters by name: add one, use it, see which there are.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The context's name.")]
COLUMNS = (
    Column("current", ""),
    Column("name", "name"),
    Column("bootstrap", "bootstrap"),
    Column("properties", "properties"),
)
SECRETS = ("password", "secret", "token", "jaas", "key.pem")
"""Properties with one of these words in their names are not shown."""


@app.command()
def add(
    name: Name,
    bootstrap: Annotated[
        str, typer.Option("--bootstrap", metavar="HOST:PORT", help="The cluster's address; several with commas.")
    ],
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="NAME=VALUE", help="A client property, under Kafka's name. Repeatable."),
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context as well.")] = False,
    json: Json = False,
) -> None:
    """Give a cluster a name; a context of that name is replaced."""
    if not name.strip():
        fail("the name of a context cannot be empty", 2)
    connection = Connection(bootstrap, name_values(property_ or [], "--property", "security.protocol=SSL"))
    connection.addresses()
    changed = contexts.load().with_context(name, connection, use=use)
    contexts.save(changed)
    current = changed.current == name
    note = (
        ", which is now the current one" if current else f" (`millstream context use {name}` makes it the current one)"
    )
    done(f"added {name}{note}", json=json, name=name, bootstrap=bootstrap, current=current)


@app.command()
def use(name: Name, json: Json = False) -> None:
    """Make a context the current one."""
    found = contexts.load()
    connection = found.get(name, "context use")
    contexts.save(found._replace(current=name))
    done(f"commands go to {name} now: {connection.bootstrap}", json=json, name=name, bootstrap=connection.bootstrap)


@app.command("list", no_args_is_help=False)
def list_(json: Json = False) -> None:
    """Show all contexts; the current one has a star."""
    found = contexts.load()
    rows = [_row(name, connection, name == found.current) for name, connection in sorted(found.by_name.items())]
    if not json:
        for row in rows:
            row["current"] = "*" if row["current"] else ""
            row["properties"] = [f"{name}={value}" for name, value in row["properties"].items()]
    show_rows(rows, COLUMNS, json=json, empty="no contexts yet (`millstream context add NAME --bootstrap HOST:PORT`)")


@app.command(no_args_is_help=False)
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The context's name. [default: the current]")
    ] = None,
    json: Json = False,
) -> None:
    """Show one context, or where commands go without one."""
    found = contexts.load()
    if name is None and found.current is None:
        connection = contexts.resolve(None, None)
        show_values({"name": None, "bootstrap": connection.bootstrap, "file": str(contexts.path())}, json=json)
        return
    name = name or str(found.current)
    row = _row(name, found.get(name, "context show"), name == found.current)
    properties = row.pop("properties")
    if json:
        show_values({**row, "properties": properties, "file": str(contexts.path())}, json=True)
    else:
        show_values({**row, **properties, "file": str(contexts.path())}, json=False)


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a context; the cluster is not touched."""
    found = contexts.load()
    found.get(name, "context remove")
    contexts.save(found.without(name))
    done(f"removed {name}", json=json, name=name)


def _row(name: str, connection: Connection, current: bool) -> dict[str, Any]:
    shown = {
        key: "(hidden)" if any(word in key for word in SECRETS) else value
        for key, value in connection.properties.items()
    }
    return {"name": name, "bootstrap": connection.bootstrap, "current": current, "properties": shown}

"""What a person types: the `millstream` command.

One file for each command or group of commands; `COMMANDS` is their table, and each is imported when it is called, so
that `millstream serve` does not pay for the others. A command turns arguments into calls of the packages below, and
results into tables or JSON (`output`); it holds no logic of its own. Exit codes: 0 done, 1 it failed, 2 the command
line was wrong, 3 the cluster cannot be reached, 4 what was named does not exist.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "up": "up",
    "down": "up",
    "status": "up",
    "serve": "serve",
    "context": "context",
    "topic": "topic",
    "group": "group",
    "config": "config",
    "cluster": "cluster",
    "txn": "txn",
    "log": "log",
    "bench": "bench",
    "plan": "plan",
    "graduate": "graduate",
    "pipeline": "pipeline",
    "example": "example",
}
"""Command -> the module in this package whose `app` has it: as the whole app, or as a command of the same name."""


class LazyCommands(TyperGroup):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{COMMANDS[cmd_name]}")
        command = typer.main.get_command(module.app)
        return getattr(command, "commands", {}).get(cmd_name, command)


app = typer.Typer(
    name="millstream",
    cls=LazyCommands,
    help="A streaming data platform: a log server that every Kafka client already speaks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from millstream import __version__

        typer.echo(f"millstream {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point of the `millstream` script."""
    from millstream.cluster.errors import ClusterError

    try:
        app()
    except ClusterError as error:
        typer.echo(f"millstream: {error}", err=True)
        sys.exit(error.exit_code)

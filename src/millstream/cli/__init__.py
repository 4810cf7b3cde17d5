"""What a person types: the `millstream` command.

One file for each command. A command turns arguments into calls of the packages below and errors into one line on
standard error and an exit code; it holds no logic of its own. Exit codes: 0 done, 1 it failed, 2 the command line was
wrong.
"""

from __future__ import annotations

import typer

from millstream.cli.serve import serve

app = typer.Typer(
    name="millstream",
    help="A streaming data platform: a log server that every Kafka client already speaks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(serve)


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
    app()

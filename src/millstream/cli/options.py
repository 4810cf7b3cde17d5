"""What all commands share, declared once: how an app looks, and the options of every command of a cluster."""

from collections.abc import Iterable
from typing import Annotated

import typer

from millstream.cli.output import fail

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap", metavar="HOST:PORT", help="The cluster's address; several with commas. [default: the context's]"
    ),
]
Context = Annotated[str | None, typer.Option("--context", metavar="NAME", help="The context that names the cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text for people.")]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this the plan is only shown.")]


def command_app(text: str) -> typer.Typer:
    """The app of one module of commands."""
    return typer.Typer(
        help=text,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def name_values(given: Iterable[str], option: str, example: str) -> dict[str, str]:
    """The NAME=VALUE texts of a repeatable option; the end, with exit code 2, if one is not."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            fail(f"{option} {text!r} is not NAME=VALUE, for example {option} {example}", 2)
        values[name.strip()] = value.strip()
    return values

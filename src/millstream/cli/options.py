"""What all commands share, declared once: how an app looks, and the options of every command of a cluster."""

from typing import Annotated

import typer

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

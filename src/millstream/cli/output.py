"""What commands print: tables and sentences for people, JSON for machines; mistakes on standard error.

Every command builds plain data (a list of rows, or one mapping) and hands it over; `--json` decides how it looks.
Rich is imported only when a table is drawn.
"""

from __future__ import annotations

import io
import json as json_
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import typer

PIPE_WIDTH = 100_000


class Column(NamedTuple):
    """One column of a table: the key in the row, its heading, and whether it holds numbers.

    On a narrow terminal numbers and what must stay `whole` do; the other columns are folded, the `least` wide last.
    """

    key: str
    heading: str
    number: bool = False
    whole: bool = False
    least: int | None = None


def show_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, json: bool, empty: str = "") -> None:
    """A table, or the rows as a JSON array; `empty` is what a person reads when there are none.

    A table in a pipe has a line for each row, however long, and no spaces at the ends of lines.
    """
    if json:
        print_json(list(rows))
    elif not rows:
        print(empty)
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            justify: Literal["right", "left"] = "right" if column.number else "left"
            table.add_column(column.heading, justify=justify, overflow="fold", no_wrap=column.whole or column.number)
        for row in rows:
            table.add_row(*(escape(_cell(row.get(column.key))) for column in columns))
        if sys.stdout.isatty():
            Console(highlight=False).print(table)
        else:
            plain = io.StringIO()
            Console(file=plain, width=PIPE_WIDTH, highlight=False).print(table)
            print("\n".join(line.rstrip() for line in plain.getvalue().splitlines()))


def show_values(values: Mapping[str, Any], *, json: bool) -> None:
    """One thing: its values line by line, or a JSON object."""
    if json:
        print_json(values)
        return
    width = max(map(len, values), default=0)
    for name, value in values.items():
        print(f"{name.replace('_', ' '):<{width}}  {_cell(value)}")


def done(sentence: str, *, json: bool, **values: Any) -> None:
    """What was done: a sentence, or its values as a JSON object."""
    if json:
        print_json(values)
    else:
        print(sentence)


def print_json(data: Any) -> None:
    print(json_.dumps(data, default=str, indent=2 if sys.stdout.isatty() else None))


def warn(sentence: str) -> None:
    typer.echo(f"millstream: {sentence}", err=True)


def fail(sentence: str, code: int = 1) -> NoReturn:
    """One line on standard error, and the end. Codes: 1 failed, 2 bad input, 3 unreachable, 4 not found."""
    warn(sentence)
    raise typer.Exit(code)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(str, value)) or "-"
    return str(value)

"""One run of an example: its cluster, its folder for results, and how it speaks to whoever watches."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from example_kit.cluster import started_cluster
from example_kit.presence import watched_cluster
from example_kit.topics import check_cluster

ENGINES = {"embedded": "Millstream", "kafka": "Apache Kafka"}


class Run:
    """What an example has while it runs."""

    def __init__(self, options: argparse.Namespace, bootstrap: str, console: Console) -> None:
        self.options = options
        self.bootstrap = bootstrap
        self.console = console
        self.out: Path = options.out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)

    @property
    def live(self) -> bool:
        """Whether somebody watches on a terminal, where things can be drawn over; else there are only lines."""
        return self.console.is_terminal

    def say(self, sentence: str, style: str = "") -> None:
        """A sentence about what happens, with the time."""
        now = datetime.now()
        text = f"[dim]{now:%H:%M:%S}.{now.microsecond // 1000:03}[/dim]  {escape(sentence)}"
        self.console.print(f"[{style}]{text}[/{style}]" if style else text)

    def report(self, values: Mapping[str, Any], title: str = "Report") -> None:
        """What came out: shown, or printed as JSON with `--json`; and kept in `report.json`."""
        (self.out / "report.json").write_text(json.dumps(values, default=str, indent=2) + "\n")
        if self.options.json:
            sys.stdout.write(json.dumps(values, default=str) + "\n")
            return
        table = Table(
            title=title, title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False
        )
        for name, value in values.items():
            if isinstance(value, Mapping):
                table.add_row(escape(name.replace("_", " ")), "")
                for inner, item in value.items():
                    table.add_row(f"  {escape(inner.replace('_', ' '))}", escape(_text(item)))
            else:
                table.add_row(escape(name.replace("_", " ")), escape(_text(value)))
        self.console.print()
        self.console.print(table)


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Run]:
    """The run, with a cluster: the one that was named, or one that is started now and stopped at the end.

    If the cluster goes away in between, that is said, and so is its return.
    """
    console = Console(stderr=options.json, highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        if options.bootstrap:
            check_cluster(options.bootstrap)
        bootstrap = options.bootstrap or stack.enter_context(started_cluster(options.engine))
        run = Run(options, bootstrap, console)
        what = "the cluster" if options.bootstrap else ENGINES[options.engine]
        run.say(f"{what} listens on {bootstrap}")
        stack.enter_context(watched_cluster(run.say, bootstrap))
        yield run


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return str(value)

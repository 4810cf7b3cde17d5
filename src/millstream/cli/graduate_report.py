"""How a move looks: the preflight report and the result, for people."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millstream.cli.units import duration_text, size_text

if TYPE_CHECKING:
    from rich.console import Console

    from millstream.cluster.graduation.moving import Outcome
    from millstream.cluster.graduation.plan import Preflight, TopicPlan

_ACTIONS = {"new": "create", "empty": "fill", "resume": "resume", "moved": "none: moved"}
_MANY = 12
"""Verified partitions are listed up to this number; of more, each topic gets one line."""


def show_preflight(plan: Preflight) -> None:
    console = _console()
    print(f"From  {plan.source.bootstrap}, cluster {plan.source.cluster_id}")
    print(
        f"To    {plan.target.bootstrap}, cluster {plan.target.cluster_id} of {_plural(plan.target.brokers, 'broker')}"
    )
    _show_topics(console, plan)
    if plan.groups:
        table = _table("Group", "State", ">Positions", "Action")
        for group in plan.groups:
            verdict = f"[yellow]not moved: {group.refused}[/]" if group.refused else "move"
            table.add_row(group.group, group.state or "-", f"{len(group.positions):,}", verdict)
        print()
        _print_table(console, table)
    _show_list(console, "Not moved", [f"{entry.what}: {entry.why}" for entry in plan.left_out])
    _show_list(console, "To know", plan.notes)
    blockers = [f"{entry.subject} {entry.problem}\n-> {entry.remedy}" for entry in plan.blockers]
    _show_list(console, "In the way", blockers, style="bold red")


def _show_topics(console: Console, plan: Preflight) -> None:
    print()
    if not plan.topics:
        print("There are no topics to move.")
        return
    table = _table("Topic", ">Partitions", ">Offsets", ">To copy", ">Size", "Codec", "Action")
    for topic in plan.topics:
        table.add_row(
            topic.name,
            str(len(topic.partitions)),
            f"{topic.offsets:,}",
            f"{topic.to_copy:,}",
            size_text(topic.bytes),
            _codecs(topic),
            _ACTIONS[topic.state],
        )
    _print_table(console, table)
    factors = sorted({topic.replication_factor for topic in plan.topics if topic.replication_factor > 0})
    print(
        f"{_plural(len(plan.topics), 'topic')}, "
        f"{_plural(sum(topic.to_copy for topic in plan.topics), 'offset')} to copy, "
        f"{size_text(sum(topic.bytes for topic in plan.topics))} on disk, "
        f"{_plural(sum(not group.refused for group in plan.groups), 'group')}"
        + (f", replication factor {' and '.join(map(str, factors))}" if factors else "")
    )
    settings = [
        f"{topic.name}: {name}={value}"
        for topic in plan.topics
        if topic.state != "moved"
        for name, value in topic.configs.items()
    ]
    _show_list(console, "Configs to set, where the target's defaults differ", settings)


def _codecs(topic: TopicPlan) -> str:
    filled = [codec for part, codec in zip(topic.partitions, topic.codecs, strict=True) if part.end > part.first]
    return ", ".join(sorted(set(filled))) or "-"


def show_outcome(plan: Preflight, outcome: Outcome) -> None:
    console = _console()
    console.print()
    if outcome.comparisons:
        _show_comparisons(console, outcome)
    for group in outcome.groups:
        changed = f" ({_plural(group.adjusted, 'position')} taken to the nearest record)" if group.adjusted else ""
        console.print(f"group {group.group}: {_plural(group.partitions, 'position')} moved and verified{changed}")
    for name, why in outcome.refused_groups:
        console.print(f"[yellow]group {name}: not moved, it {why}[/]")
    moved = sum(topic.state == "moved" for topic in plan.topics)
    if moved:
        console.print(f"{_plural(moved, 'topic')} had been moved before and had nothing new")
    took = duration_text(round(outcome.seconds * 1000))
    console.print(
        f"[bold green]Moved[/] {_plural(len(outcome.topics), 'topic')} with {_plural(outcome.records, 'record')} "
        f"({size_text(outcome.bytes)}) and {_plural(len(outcome.groups), 'group')} in {took}."
    )
    if outcome.placeholders:
        print(f"{_plural(outcome.placeholders, 'offset')} without a record held by placeholders.")
    if outcome.arrived_later:
        console.print(
            f"[yellow]{_plural(outcome.arrived_later, 'offset')} came to the source after the move began:[/] "
            "stop its producers and run the same command again, or --follow"
        )
    console.print("Nothing was changed at the source.")


def _show_comparisons(console: Console, outcome: Outcome) -> None:
    if len(outcome.comparisons) > _MANY:
        table = _table("Topic", ">Partitions", ">Records", "Verified")
        for name in outcome.topics:
            found = [entry for entry in outcome.comparisons if entry.topic == name]
            table.add_row(name, str(len(found)), f"{sum(entry.target.records for entry in found):,}", "[green]equal[/]")
    else:
        table = _table("Partition", ">Records", ">First", ">Last", "Checksum", "Verified")
        for entry in outcome.comparisons:
            side = entry.target
            table.add_row(
                f"{entry.topic}-{entry.partition}",
                f"{side.records:,}",
                str(side.first) if side.records else "-",
                str(side.last) if side.records else "-",
                side.checksum[:12] if side.records else "-",
                "[green]equal[/]" + (f", {entry.superseded} compacted since" if entry.superseded else ""),
            )
    _print_table(console, table)


def _show_list(console: Console, heading: str, lines: Sequence[str], style: str = "bold") -> None:
    if not lines:
        return
    print()
    console.print(heading, style=style)
    for line in lines:
        for number, part in enumerate(line.split("\n")):
            indent = "    " if number else "  "
            print(
                textwrap.fill(
                    part,
                    console.width,
                    initial_indent=indent,
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(*headings: str) -> Any:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, overflow="fold")
    return table


def _print_table(console: Console, table: Any) -> None:
    """Without the blanks that rich fills lines with."""
    with console.capture() as text:
        console.print(table)
    print("\n".join(line.rstrip() for line in text.get().splitlines()))


def _console() -> Console:
    """As wide as the terminal; where there is none, COLUMNS or wide enough for the widest table."""
    from rich.console import Console

    return Console(highlight=False, width=shutil.get_terminal_size((140, 25)).columns)

"""`millstream plan`: what a cluster needs, before there is one."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.options import Json, command_app
from millstream.cli.output import Column, print_json, show_rows

if TYPE_CHECKING:
    from millstream.cluster.capacity import Capacity, Load, Machine

app = command_app("Plan a cluster.")
_WIDE = 130
"""From this width on a step of the calculation fits on one line."""


@app.callback()
def _plan() -> None:
    """Plan a cluster."""


@app.command("capacity")
def capacity(
    throughput: Annotated[
        str, typer.Option("--throughput", metavar="RATE", help="What producers send: 50MB/s, or records: 20000/s.")
    ],
    message_size: Annotated[str, typer.Option("--message-size", metavar="SIZE", help="Of one record.")] = "1KB",
    retention: Annotated[str, typer.Option("--retention", metavar="TIME", help="How long records are kept.")] = "7d",
    replication: Annotated[int, typer.Option("--replication", min=1, help="Copies of each record.")] = 3,
    consumers: Annotated[int, typer.Option("--consumers", min=0, help="Groups that read everything.")] = 1,
    compression_ratio: Annotated[
        float, typer.Option("--compression-ratio", help="How many times smaller records become when compressed.")
    ] = 1.0,
    headroom: Annotated[
        str, typer.Option("--headroom", metavar="SHARE", help="What stays free for peaks and failures.")
    ] = "30%",
    disk: Annotated[str, typer.Option("--disk", metavar="SIZE", help="Disk of one broker.")] = "2TB",
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory of one broker.")] = "64GiB",
    network: Annotated[str, typer.Option("--network", metavar="RATE", help="Network of one broker.")] = "10Gbit",
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, help="Of all topics together. [default: from the throughput]")
    ] = None,
    json: Json = False,
) -> None:
    """Compute brokers, disk, memory, network and partitions for a load, with the formulas shown."""
    from millstream.cluster import capacity as formulas

    record = formulas.parse_size(message_size, "--message-size")
    load = formulas.Load(
        formulas.parse_rate(throughput, record, "--throughput"),
        record,
        formulas.parse_time(retention, "--retention"),
        replication,
        consumers,
        compression_ratio,
        formulas.parse_share(headroom, "--headroom"),
        partitions,
    )
    machine = formulas.Machine(
        formulas.parse_size(disk, "--disk"),
        formulas.parse_size(memory, "--memory"),
        formulas.parse_network(network, "--network"),
    )
    found = formulas.plan(load, machine)
    if json:
        print_json(
            {
                "load": load._asdict(),
                "machine": machine._asdict(),
                **found._asdict(),
                "steps": [step._asdict() for step in found.steps],
            }
        )
        return
    _show(found, load, machine)


def _show(found: Capacity, load: Load, machine: Machine) -> None:
    from millstream.cluster import capacity as formulas

    replicas = -(-found.partitions * load.replication // found.brokers)
    print(f"{found.brokers:,} broker{'s' * (found.brokers != 1)}, decided by {found.decided_by}. Each of them:\n")
    rows = [
        ("disk", formulas.size(found.disk_per_broker), formulas.size(machine.disk)),
        ("memory", formulas.size(found.memory_per_broker, binary=True), formulas.size(machine.memory, binary=True)),
        ("network in", formulas.rate(found.network_in_per_broker), formulas.rate(machine.network)),
        ("network out", formulas.rate(found.network_out_per_broker), formulas.rate(machine.network)),
        ("partition replicas", f"{replicas:,}", f"{formulas.PARTITIONS_PER_BROKER:,}"),
    ]
    show_rows(
        [dict(zip(("what", "used", "has"), row, strict=True)) for row in rows],
        [Column("what", ""), Column("used", "Needs", True), Column("has", "Has", True)],
        json=False,
    )
    print(f"\nIn all {formulas.size(found.disk_total)} of disk and {found.partitions:,} partitions.")
    print("\nHow it is computed:\n")
    name_width = max(len(step.name) for step in found.steps)
    formula_width = max(len(step.formula) for step in found.steps)
    one_line = shutil.get_terminal_size().columns >= _WIDE
    for step in found.steps:
        formula = f"{step.name:<{name_width}}  {step.formula}"
        if one_line:
            print(f"{formula:<{name_width + 2 + formula_width}}  = {step.numbers} = {step.result}")
        else:
            print(f"{formula}\n{'':<{name_width}}  = {step.numbers} = {step.result}")
    if found.notes:
        print("\nTo know:\n")
    for note in found.notes:
        print(textwrap.fill(note, shutil.get_terminal_size().columns, initial_indent="- ", subsequent_indent="  "))

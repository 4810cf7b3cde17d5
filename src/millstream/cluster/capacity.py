"""What a cluster needs for a load: brokers, disk, memory, network and partitions, each with its formula.

Everything is computed from a `Load` and the `Machine` that a broker runs on, in plain steps: a `Step` is a name, the
formula in words, the formula with the numbers put in, and the result. Sizes are bytes, rates bytes per second, times
seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from millstream.cluster.errors import BadInput

HOT_SECONDS = 30 * 60
"""How far behind consumers may be and still be served from memory."""
HEAP_BYTES = 6 * 2**30
"""A Kafka broker's heap: it does not grow with the data, which stays in the page cache."""
SYSTEM_BYTES = 2 * 2**30
"""For the operating system and what runs beside the broker."""
PARTITION_RATE = 10 * 10**6
"""What one partition is planned to take: about what one consumer works off comfortably."""
MINIMUM_PARTITIONS = 3
PARTITIONS_PER_BROKER = 4000
SEGMENT_BYTES = 2**30
"""The active segment of each replica is kept whatever the retention says."""
DISK_RATE = 200 * 10**6
"""What one broker's disk is planned to write in a row."""

_SIZES = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "pib": 2**50,
}  # fmt: skip
_TIMES = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_NETWORKS = {"mbit": 10**6 / 8, "gbit": 10**9 / 8}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Z%]*)(/s)?\s*")


class Load(NamedTuple):
    """What the cluster is to carry."""

    rate: float
    """Bytes per second that producers send, before compression."""
    message_size: float
    retention: float
    replication: int = 3
    consumers: int = 1
    """Groups that read everything."""
    compression: float = 1.0
    """How many times smaller records become."""
    headroom: float = 0.3
    """The part of each machine that stays free for peaks, rebalancing and a broker that fails."""
    partitions: int | None = None


class Machine(NamedTuple):
    """What one broker has."""

    disk: float = 2 * 10**12
    memory: float = 64 * 2**30
    network: float = 10 * 10**9 / 8


class Step(NamedTuple):
    """One line of the calculation."""

    name: str
    formula: str
    numbers: str
    result: str


class Capacity(NamedTuple):
    """The answer and how it came about."""

    brokers: int
    decided_by: str
    partitions: int
    disk_total: float
    disk_per_broker: float
    memory_per_broker: float
    network_in_per_broker: float
    network_out_per_broker: float
    brokers_for: Mapping[str, int]
    steps: list[Step]
    notes: list[str]


def plan(load: Load, machine: Machine) -> Capacity:
    """BadInput if the numbers make no cluster.

    Unless partitions are given there is at least one for each broker, or brokers would have nothing to lead; more
    partitions take more disk, which may take more brokers: repeated until it fits.
    """
    _check(load, machine)
    found = _plan(load, machine, load.partitions or max(MINIMUM_PARTITIONS, _ceil(load.rate / PARTITION_RATE)))
    while load.partitions is None and found.partitions < found.brokers:
        found = _plan(load, machine, found.brokers)
    return found


def _plan(load: Load, machine: Machine, partitions: int) -> Capacity:
    steps: list[Step] = []

    def step(name: str, formula: str, numbers: str, result: str) -> None:
        steps.append(Step(name, formula, numbers, result))

    usable, free = 1 - load.headroom, percent(load.headroom)
    messages = load.rate / load.message_size
    step(
        "messages", "throughput / message size", f"{rate(load.rate)} / {size(load.message_size)}", f"{messages:,.0f}/s"
    )
    stored_rate = load.rate / load.compression
    step("stored", "throughput / compression ratio", f"{rate(load.rate)} / {load.compression:g}", rate(stored_rate))

    replicas = partitions * load.replication
    step("replicas", "partitions x replication", f"{partitions:,} x {load.replication}", f"{replicas:,}")

    data = stored_rate * load.retention * load.replication
    step("data", "stored x retention x replication",
         f"{rate(stored_rate)} x {load.retention:,.0f} s x {load.replication}", size(data))  # fmt: skip
    active = min(SEGMENT_BYTES, stored_rate * load.retention / partitions) * replicas
    step("active segments", "replicas x segment, at most one retention's data",
         f"{replicas:,} x {size(active / replicas)}", size(active))  # fmt: skip
    disk = (data + active) / usable
    step("disk", "(data + active segments) / (1 - headroom)",
         f"({size(data)} + {size(active)}) / (1 - {free})", size(disk))  # fmt: skip

    incoming = stored_rate * load.replication
    step("network in", "stored x replication", f"{rate(stored_rate)} x {load.replication}", rate(incoming))
    outgoing = stored_rate * (load.replication - 1 + load.consumers)
    step("network out", "stored x (replication - 1 + consumers)",
         f"{rate(stored_rate)} x ({load.replication} - 1 + {load.consumers})", rate(outgoing))  # fmt: skip
    hot = stored_rate * load.replication * HOT_SECONDS
    step("page cache", "network in x hot window", f"{rate(incoming)} x {HOT_SECONDS:,} s", size(hot))

    needs = {
        "replication": (load.replication, "replication, each copy on a broker of its own", "--replication"),
        "disk": (_ceil(disk / machine.disk), "disk / disk of a broker", f"{size(disk)} / {size(machine.disk)}"),
        "disk writes": (
            _ceil(incoming / (DISK_RATE * usable)),
            "network in / (disk throughput x (1 - headroom))",
            f"{rate(incoming)} / ({rate(DISK_RATE)} x (1 - {free}))",
        ),
        "network": (
            _ceil(max(incoming, outgoing) / (machine.network * usable)),
            "larger of in and out / (network x (1 - headroom))",
            f"{rate(max(incoming, outgoing))} / ({rate(machine.network)} x (1 - {free}))",
        ),
        "memory": (
            _ceil(hot / (machine.memory - HEAP_BYTES - SYSTEM_BYTES)),
            "page cache / (memory - heap - system)",
            f"{size(hot)} / ({size(machine.memory, binary=True)} - {size(HEAP_BYTES, binary=True)} - "
            f"{size(SYSTEM_BYTES, binary=True)})",
        ),
        "partitions": (
            _ceil(replicas / PARTITIONS_PER_BROKER),
            "replicas / replicas of a broker",
            f"{replicas:,} / {PARTITIONS_PER_BROKER:,}",
        ),
    }
    for name, (count, formula, numbers) in needs.items():
        step(f"brokers for {name}", formula, numbers, f"{count:,}")
    brokers = max(count for count, _, _ in needs.values())
    decided_by = next(name for name, (count, _, _) in needs.items() if count == brokers)
    step("brokers", "the largest of these", ", ".join(f"{count:,}" for count, _, _ in needs.values()), f"{brokers:,}")
    steps.insert(2, _partition_step(load, partitions, brokers))
    memory = hot / brokers + HEAP_BYTES + SYSTEM_BYTES
    step("memory per broker", "page cache / brokers + heap + system",
         f"{size(hot)} / {brokers:,} + {size(HEAP_BYTES, binary=True)} + {size(SYSTEM_BYTES, binary=True)}",
         size(memory, binary=True))  # fmt: skip
    step("disk per broker", "disk / brokers", f"{size(disk)} / {brokers:,}", size(disk / brokers))
    brokers_for = {name: count for name, (count, _, _) in needs.items()}
    return Capacity(
        brokers,
        decided_by,
        partitions,
        disk,
        disk / brokers,
        memory,
        incoming / brokers,
        outgoing / brokers,
        brokers_for,
        steps,
        _notes(load, partitions, brokers_for, disk),
    )


def _partition_step(load: Load, partitions: int, brokers: int) -> Step:
    if load.partitions is not None:
        return Step("partitions", "as given", "--partitions", f"{partitions:,}")
    return Step(
        "partitions",
        f"larger of throughput / that of one, brokers, and {MINIMUM_PARTITIONS}",
        f"{rate(load.rate)} / {rate(PARTITION_RATE)}, {brokers:,}, {MINIMUM_PARTITIONS}",
        f"{partitions:,}",
    )


def _notes(load: Load, partitions: int, brokers_for: Mapping[str, int], disk: float) -> list[str]:
    found = []
    brokers = max(brokers_for.values())
    others = max(count for name, count in brokers_for.items() if name != "disk")
    if brokers > others:
        found.append(
            f"only the disk asks for {brokers:,} brokers, everything else for {others:,}: with {size(disk / others)} "
            f"of disk each, {others:,} would do (--disk)"
        )
    if partitions * load.replication < brokers:
        found.append(
            f"{partitions:,} partitions in {load.replication} copies use only {partitions * load.replication:,} of "
            f"{brokers:,} brokers: take more partitions"
        )
    if load.replication == 1:
        found.append("there is one copy of everything: a broker that fails takes its records with it")
    elif brokers == load.replication:
        found.append("with a broker down no new copy can be placed: one broker more than copies helps")
    if load.compression == 1:
        found.append("no compression is assumed (--compression-ratio): text and JSON often become 3 to 6 times smaller")
    return found


def _check(load: Load, machine: Machine) -> None:
    for argument, value in (
        ("--throughput", load.rate), ("--message-size", load.message_size), ("--retention", load.retention),
        ("--replication", load.replication), ("--disk", machine.disk), ("--network", machine.network),
    ):  # fmt: skip
        if value <= 0:
            raise BadInput(f"{argument}: must be more than 0")
    if not 0 <= load.headroom < 1:
        raise BadInput("--headroom: must be from 0% to less than 100%, for example 30%")
    if load.compression < 1:
        raise BadInput("--compression-ratio: must be 1 or more; 4 means four times smaller")
    if load.consumers < 0:
        raise BadInput("--consumers: must be 0 or more")
    if load.partitions is not None and load.partitions <= 0:
        raise BadInput("--partitions: must be more than 0")
    least = HEAP_BYTES + SYSTEM_BYTES
    if machine.memory <= least:
        raise BadInput(
            f"--memory: a broker needs more than {size(least, binary=True)} (heap and system), for example 32GB"
        )


def parse_size(text: str, argument: str) -> float:
    """`1KB`, `2TB`, `64GiB`, `100` in bytes."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[3] or match[2].lower() not in _SIZES:
        raise BadInput(f"{argument}: {text!r} is not a size; write for example 100B, 1KB, 512KiB, 64GB or 2TB")
    return float(match[1]) * _SIZES[match[2].lower()]


def parse_time(text: str, argument: str) -> float:
    """`90m`, `12h`, `7d` in seconds."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[3] or match[2].lower() not in _TIMES:
        raise BadInput(f"{argument}: {text!r} is not a time; write for example 30m, 12h, 7d or 2w")
    return float(match[1]) * _TIMES[match[2].lower()]


def parse_rate(text: str, message_size: float, argument: str) -> float:
    """`50MB/s`, or records `20000/s`, which are taken times the message size; bytes per second."""
    match = _NUMBER.fullmatch(text)
    if match is None or not match[3] or match[2].lower() not in _SIZES:
        raise BadInput(
            f"{argument}: {text!r} is not a throughput; write bytes such as 50MB/s or records such as 20000/s"
        )
    unit = match[2].lower()
    return float(match[1]) * (_SIZES[unit] if unit else message_size)


def parse_network(text: str, argument: str) -> float:
    """`10Gbit`, or bytes `1GB/s`; bytes per second."""
    match = _NUMBER.fullmatch(text)
    if match is not None and match[2].lower() in _NETWORKS:
        return float(match[1]) * _NETWORKS[match[2].lower()]
    if match is None or not match[3] or not match[2] or match[2].lower() not in _SIZES:
        raise BadInput(f"{argument}: {text!r} is not a network; write for example 1Gbit, 10Gbit or 500MB/s")
    return float(match[1]) * _SIZES[match[2].lower()]


def parse_share(text: str, argument: str) -> float:
    """`30%` or `0.3`."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[3] or match[2] not in ("", "%"):
        raise BadInput(f"{argument}: {text!r} is not a share; write for example 30% or 0.3")
    return float(match[1]) / (100 if match[2] else 1)


def size(number: float, *, binary: bool = False) -> str:
    """`90.7 TB`, as disks are sold; memory in powers of 1024: `64 GiB`."""
    base, units = (
        (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")) if binary else (1000, ("B", "kB", "MB", "GB", "TB", "PB"))
    )
    unit = units[0]
    for unit in units:
        if number < base * 0.9995 or unit == units[-1]:
            break
        number /= base
    return f"{number:.3g} {unit}" if number < 1000 else f"{number:,.0f} {unit}"


def rate(number: float) -> str:
    return f"{size(number)}/s"


def percent(share: float) -> str:
    return f"{share * 100:g}%"


def _ceil(number: float) -> int:
    """At least one; what is whole but for the rounding of floats stays."""
    return max(1, math.ceil(number - 1e-9))

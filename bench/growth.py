"""The same work over more and more partitions and connections: nothing should grow faster than the work does.

Requests are ready-made (`raw`), the same number at each size, so the client costs the same whatever the size is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench import loads, raw
from bench.rows import MB, Scale
from bench.systems import System

SIZES = (1, 10, 100, 1_000)
_RECORDS = 10
_RECORD_SIZE = 100
_FIRST_REQUESTS = 10
"""To a partition: its indexes are made with the first entry, after 4 kB."""


class Point(NamedTuple):
    """Medians at one size."""

    size: int
    requests_per_second: float
    cpu_microseconds: float
    """Of the server, for a request."""
    memory: float
    """Megabytes at most."""


Curves = dict[str, dict[str, list[Point]]]
"""Over what, then server."""


def grow(systems: Sequence[System], scale: Scale, say: Callable[[str], None]) -> Curves:
    curves: Curves = {}
    for over, measure in (("partitions", _over_partitions), ("connections", _over_connections)):
        curves[over] = {system.name: [] for system in systems}
        sizes = SIZES if scale.share > 0.01 else SIZES[:2]
        for size in sizes:
            found: dict[str, list[Point]] = {system.name: [] for system in systems}
            for _ in range(min(3, scale.rounds)):
                for system in systems:
                    found[system.name].append(measure(system, size, scale.of(20_000)))
            for name, points in found.items():
                curves[over][name].append(_median(points))
            said = "   ".join(
                f"{name} {points[-1].requests_per_second:,.0f}/s" for name, points in curves[over].items()
            )
            say(f"{size} {over}: {said}")
    return curves


def _over_partitions(system: System, size: int, requests: int) -> Point:
    """Ten connections whose requests go round over all partitions."""
    topic = loads.new_topic(system.bootstrap, size)
    frames = [
        raw.produce_frame(topic, size=_RECORD_SIZE, records=_RECORDS, partition=partition) for partition in range(size)
    ]
    try:
        return _watched(system, size, requests, frames, connections=10)
    finally:
        loads.delete_topic(system.bootstrap, topic)


def _over_connections(system: System, size: int, requests: int) -> Point:
    """One partition each, as long as there are ten; one request under way on each connection."""
    topic = loads.new_topic(system.bootstrap, 10)
    frames = [
        raw.produce_frame(topic, size=_RECORD_SIZE, records=_RECORDS, partition=partition) for partition in range(10)
    ]
    try:
        return _watched(system, size, max(requests, size), frames, connections=size)
    finally:
        loads.delete_topic(system.bootstrap, topic)


def _watched(system: System, size: int, requests: int, frames: Sequence[bytes], connections: int) -> Point:
    # Enough for every partition to have all its files: making them is the file system's work.
    warm_up = max(requests // 10, connections, _FIRST_REQUESTS * len(frames))
    raw.push(system.bootstrap, frames, connections=connections, requests=warm_up, depth=1)
    with system.watched() as spent:
        seconds = raw.push(system.bootstrap, frames, connections=connections, requests=requests, depth=1)
    return Point(size, requests / seconds, spent.cpu_seconds / requests * 1e6, spent.peak_memory / MB)


def _median(points: Sequence[Point]) -> Point:
    return Point(points[0].size, *(statistics.median(column) for column in list(zip(*points, strict=True))[1:]))

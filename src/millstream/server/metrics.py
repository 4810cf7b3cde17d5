"""What the server counts, and how it is told to Prometheus.

Counting is on the hot path, so it is a few list operations per request; everything else (partitions, groups, lag,
memory) is read from the broker when somebody asks. The Prometheus library is imported only then.
"""

from __future__ import annotations

import resource
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.server.server import Server

LATENCY_BUCKETS_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class ApiStats:
    """The counters of one API."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(LATENCY_BUCKETS_SECONDS) + 1)


class RequestMetrics:
    """Counters by API name."""

    def __init__(self) -> None:
        self.by_api: dict[str, ApiStats] = {}
        self.connections_accepted = 0
        self.connections_refused = 0

    def record(self, api: str, bytes_in: int, bytes_out: int, seconds: float) -> None:
        stats = self.by_api.get(api)
        if stats is None:
            stats = self.by_api[api] = ApiStats()
        stats.requests += 1
        stats.bytes_in += bytes_in
        stats.bytes_out += bytes_out
        stats.seconds += seconds
        stats.buckets[bisect_left(LATENCY_BUCKETS_SECONDS, seconds)] += 1


class ServerCollector:
    """Turns counters and the broker's state into Prometheus' metric families, at the moment of a scrape."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def collect(self) -> Iterator[Any]:
        yield from self._requests()
        yield from self._connections()
        yield from self._topics()
        yield from self._groups()
        yield _gauge("process_resident_memory_bytes", "Resident memory of the server.", resident_bytes())

    def _requests(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily("millstream_requests", "Requests answered.", labels=["api"])
        received = CounterMetricFamily("millstream_request_bytes", "Bytes of requests.", labels=["api"])
        sent = CounterMetricFamily("millstream_response_bytes", "Bytes of responses.", labels=["api"])
        latency = HistogramMetricFamily("millstream_request_seconds", "From frame to response.", labels=["api"])
        for name, stats in self._server.metrics.by_api.items():
            requests.add_metric([name], stats.requests)
            received.add_metric([name], stats.bytes_in)
            sent.add_metric([name], stats.bytes_out)
            latency.add_metric([name], _cumulative(stats.buckets), stats.seconds)
        yield from (requests, received, sent, latency)

    def _connections(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        metrics = self._server.metrics
        yield _gauge("millstream_connections", "Open client connections.", len(self._server.connections))
        yield CounterMetricFamily(
            "millstream_connections_accepted", "Connections accepted.", value=metrics.connections_accepted
        )
        yield CounterMetricFamily(
            "millstream_connections_refused", "Connections over a limit.", value=metrics.connections_refused
        )
        yield _gauge("millstream_queued_request_bytes", "Memory of large requests.", self._server.request_memory.used)

    def _topics(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        families = {
            name: GaugeMetricFamily(f"millstream_partition_{name}", help_, labels=["topic", "partition"])
            for name, help_ in (
                ("log_start_offset", "First offset."),
                ("log_end_offset", "Next offset to be written."),
                ("size_bytes", "Bytes in segments."),
            )
        }
        count = 0
        for topic in self._server.broker.topics:
            for partition in topic.partitions:
                count += 1
                labels = [topic.name, str(partition.index)]
                families["log_start_offset"].add_metric(labels, partition.log.log_start_offset)
                families["log_end_offset"].add_metric(labels, partition.log.log_end_offset)
                families["size_bytes"].add_metric(labels, partition.log.size)
        yield _gauge("millstream_partitions", "Partitions on this server.", count)
        yield from families.values()

    def _groups(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        broker = self._server.broker
        states = GaugeMetricFamily("millstream_groups", "Groups by state.", labels=["type", "state"])
        for (kind, state), count in broker.groups.metrics().groups.items():
            states.add_metric([kind, state], count)
        lag = GaugeMetricFamily(
            "millstream_group_lag",
            "Records between the committed offset and the high watermark.",
            labels=["group", "topic", "partition"],
        )
        for group in broker.groups.group_ids():
            for topic, offsets in broker.groups.committed_offsets(group).items():
                for index, committed in offsets.items():
                    partition = broker.topics.partition(topic, index)
                    if partition is not None:
                        behind = max(0, partition.log.high_watermark - committed.offset)
                        lag.add_metric([group, topic, str(index)], behind)
        yield from (states, lag)


def _gauge(name: str, help_: str, value: float) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(name, help_, value=value)


def _cumulative(buckets: Iterable[int]) -> list[tuple[str, float]]:
    total = 0
    out: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, LATENCY_BUCKETS_SECONDS), "+Inf"), buckets, strict=True):
        total += count
        out.append((bound, total))
    return out


def resident_bytes() -> int:
    """Resident memory now where /proc tells, else the peak."""
    try:
        with open("/proc/self/statm") as statm:  # noqa: PTH123 - a device-like file, read at every scrape
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def render(server: Server) -> bytes:
    """The whole exposition text."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(ServerCollector(server))
    return generate_latest(registry)

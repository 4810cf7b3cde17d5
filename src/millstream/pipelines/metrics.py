"""How pipelines are, for Prometheus: the figures of their status under `millstream_pipeline_...`."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.status import STATES, Snapshot

LABELS = ("pipeline", "query")
COUNTERS = {
    "rows": "Rows read since the pipeline was started.",
    "late_rows": "Rows that came after the watermark.",
    "dead_letters": "Records sent to the dead-letter topic since the pipeline was started.",
}
GAUGES = {
    "rows_per_second": "Rows per second of the last batch.",
    "lag": "Records of the topics that are not yet read.",
    "batch": "The number of the last batch.",
    "batch_seconds": "How long the last batch took.",
    "state_rows": "Rows in the state.",
    "limit": "Records that a batch may have at most.",
}


class PipelineMetrics:
    """The endpoint `/metrics` of a runner; without an address there is none."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        self._address = address
        self._snapshot: Snapshot = ()
        self.port: int | None = None

    def __enter__(self) -> PipelineMetrics:
        if self._address is not None:
            host, port = self._address
            registry = CollectorRegistry()
            registry.register(self)
            try:
                self._server, self._thread = start_http_server(port, host, registry)
            except OSError as error:
                raise PipelineError(f"--metrics {host}:{port} is not possible: {error.strerror}") from error
            self.port = self._server.server_port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._address is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def update(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Asked for by Prometheus's registry."""
        snapshot = self._snapshot
        state = GaugeMetricFamily(
            "millstream_pipeline_state", "1 for the state it is in.", labels=("pipeline", "state")
        )
        for pipeline in snapshot:
            for name in STATES:
                state.add_metric((pipeline.name, name), float(pipeline.state == name))
        yield state
        for field, text in (COUNTERS | GAUGES).items():
            family = CounterMetricFamily if field in COUNTERS else GaugeMetricFamily
            metric = family(f"millstream_pipeline_{field}", text, labels=LABELS)
            for pipeline in snapshot:
                for query in pipeline.queries:
                    value = getattr(query, field)
                    if value is not None:
                        metric.add_metric((pipeline.name, query.name), float(value))
            yield metric

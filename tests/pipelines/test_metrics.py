"""The figures of pipelines on a Prometheus endpoint."""

from urllib.request import urlopen

import pytest

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.metrics import PipelineMetrics
from millstream.pipelines.status import PipelineStatus, QueryStatus


def test_the_endpoint_says_how_pipelines_are() -> None:
    status = PipelineStatus("orders", "running", None, [QueryStatus("main", rows=12, lag=3, late_rows=1)])
    with PipelineMetrics(("127.0.0.1", 0)) as metrics:
        metrics.update([status])
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as response:
            text = response.read().decode()
    assert 'millstream_pipeline_rows_total{pipeline="orders",query="main"} 12.0' in text
    assert 'millstream_pipeline_lag{pipeline="orders",query="main"} 3.0' in text
    assert 'millstream_pipeline_late_rows_total{pipeline="orders",query="main"} 1.0' in text
    assert 'millstream_pipeline_state{pipeline="orders",state="running"} 1.0' in text
    assert 'millstream_pipeline_state{pipeline="orders",state="failed"} 0.0' in text
    assert "millstream_pipeline_batch_seconds{" not in text  # not known yet


def test_a_port_that_is_taken_is_said() -> None:
    with (
        PipelineMetrics(("127.0.0.1", 0)) as first,
        pytest.raises(PipelineError, match=f"--metrics 127.0.0.1:{first.port} is not possible"),
        PipelineMetrics(("127.0.0.1", first.port or 0)),
    ):
        pass


def test_without_an_address_there_is_no_endpoint() -> None:
    with PipelineMetrics(None) as metrics:
        metrics.update([])
        assert metrics.port is None

"""De-duplication and watermarks."""

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import AddStep, DeduplicateStep, SelectStep, WatermarkStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.steps.watermark import delay_seconds, event_time
from support.steps import FileStream, applied, offsets, static, streamed, values

MOMENTS = "id int, t timestamp"


def test_static_rows(spark: SparkSession) -> None:
    rows = static(spark, "id int, b string", (1, "x"), (2, "x"), (1, "y"))

    once = applied(rows, DeduplicateStep(by="id", within="1h"))

    assert sorted(row[0] for row in values(once)) == [1, 2]
    assert len(offsets(once)) == 2


def test_a_stream_remembers_what_it_has_seen(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "id int", [{"id": 1}, {"id": 1}], [{"id": 2}, {"id": 1}])

    once = applied(stream.rows, DeduplicateStep(by="id"))

    assert once.columns == ["id", "_origin", "_error"]
    assert streamed(once, tmp_path / "checkpoint") == [[(1,)], [(2,)]]


def test_with_a_watermark_it_forgets(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(
        spark, tmp_path, MOMENTS,
        [{"id": 1, "t": "2024-01-01T00:00:00Z"}, {"id": 1, "t": "2024-01-01T00:00:30Z"}],
        [{"id": 2, "t": "2024-01-01T01:00:00Z"}],
        [{"id": 3, "t": "2024-01-01T01:00:00Z"}],  # a batch forgets after it has been through
        [{"id": 1, "t": "2024-01-01T01:00:00Z"}],
    )  # fmt: skip

    once = applied(stream.rows, WatermarkStep(column="t", delay="1m"), DeduplicateStep(by="id", within="1m"))

    found = streamed(applied(once, SelectStep(columns="id")), tmp_path / "checkpoint")
    assert found == [[(1,)], [(2,)], [(3,)], [(1,)]]


def test_within_needs_a_watermark_that_is_as_long(spark: SparkSession, tmp_path: Path) -> None:
    rows = FileStream(spark, tmp_path, MOMENTS, []).rows

    with pytest.raises(PipelineError, match="`within` needs a watermark"):
        applied(rows, DeduplicateStep(by="id", within="1m"))
    with pytest.raises(PipelineError, match="`within` is 60 s, but the watermark's delay is 10 s"):
        applied(rows, WatermarkStep(column="t", delay="10s"), DeduplicateStep(by="id", within="1m"))
    with pytest.raises(PipelineError, match="there is no column ID2"):
        applied(rows, DeduplicateStep(by="ID2"))


def test_the_event_time_is_known_under_another_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = applied(FileStream(spark, tmp_path, MOMENTS, []).rows, WatermarkStep(column="T", delay="90s"))

    renamed = applied(rows, SelectStep(columns=["id", "t AS moment"]))

    assert event_time(rows) == "t"
    assert event_time(renamed) == "moment"
    assert delay_seconds(renamed) == 90
    assert event_time(applied(renamed, SelectStep(columns="id"))) is None


def test_a_watermark_is_nothing_to_static_rows(spark: SparkSession) -> None:
    rows = static(spark, MOMENTS, (1, datetime(2024, 1, 1)))

    assert len(values(applied(rows, WatermarkStep(column="t", delay="1s")))) == 1


def test_the_event_time_must_be_a_timestamp_that_is_there(spark: SparkSession) -> None:
    rows = static(spark, MOMENTS, (1, datetime(2024, 1, 1)))

    with pytest.raises(PipelineError, match="the event time must be a timestamp, and text is string: cast it before"):
        applied(rows, AddStep(columns={"text": "'x'"}), WatermarkStep(column="text", delay="1s"))
    with pytest.raises(PipelineError, match="there is no column tt"):
        applied(applied(rows, SelectStep(columns=["t AS t1"])), WatermarkStep(column="tt", delay="1s"))

"""Aggregation, and windows over the event time."""

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import AggregateStep, WatermarkStep, Window
from millstream.pipelines.errors import PipelineError
from support.steps import FileStream, applied, static, streamed, values


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2024, 1, 1, 0, minute, second)


def moment(minute: int, second: int = 0) -> str:
    return f"2024-01-01T00:{minute:02}:{second:02}Z"


def test_groups_by_columns_and_named_expressions(spark: SparkSession) -> None:
    rows = static(spark, "city string, amount int", ("bonn", 1), ("Bonn", 2), ("Rom", 5))
    step = AggregateStep(by=["upper(city) AS city"], compute={"n": "count(*)", "total": "sum(amount)"})

    result = applied(rows, step)

    assert result.columns == ["city", "n", "total"]
    assert sorted(values(result)) == [("BONN", 2, 3), ("ROM", 1, 5)]


def test_all_rows_are_one_group_without_by(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (2,))

    assert values(applied(rows, AggregateStep(compute={"n": "count(*)"}))) == [(2,)]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(column="t", size="10m"), [(at(0), at(10), "a", 2), (at(10), at(20), "a", 1)]),
        (
            Window(column="t", size="10m", slide="5m"),
            [
                (datetime(2023, 12, 31, 23, 55), at(5), "a", 1), (at(0), at(10), "a", 2), (at(5), at(15), "a", 2),
                (at(10), at(20), "a", 1),
            ],
        ),
        (Window(column="t", gap="8m"), [(at(1), at(17), "a", 2), (at(19), at(27), "a", 1)]),
    ],
)  # fmt: skip
def test_windows_become_plain_columns(spark: SparkSession, window: Window, expected: list[tuple[object, ...]]) -> None:
    minutes = (1, 9, 19) if window.gap else (1, 9, 14)
    rows = static(spark, "t timestamp, k string", *((at(minute), "a") for minute in minutes))

    result = applied(rows, AggregateStep(window=window, by="k", compute={"n": "count(*)"}))

    assert result.columns == ["window_start", "window_end", "k", "n"]
    assert sorted(values(result)) == expected


def test_windows_of_a_stream_are_written_when_they_are_final(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(
        spark, tmp_path, "t timestamp, k string",
        [{"t": moment(0, 10), "k": "a"}, {"t": moment(0, 50), "k": "a"}],
        [{"t": moment(1, 10), "k": "b"}],
        [{"t": moment(3), "k": "a"}],
    )  # fmt: skip
    watermark = WatermarkStep(column="t", delay="5s")
    step = AggregateStep(window=Window(column="t", size="1 minute"), by="k", compute={"n": "count(*)"})

    result = streamed(applied(stream.rows, watermark, step), tmp_path / "checkpoint")

    assert result == [[(at(0), at(1), "a", 2)], [(at(1), at(2), "b", 1)]]


def test_sessions_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(
        spark, tmp_path, "t timestamp, k string",
        [{"t": moment(0), "k": "a"}, {"t": moment(1), "k": "a"}],
        [{"t": moment(10), "k": "b"}],
    )  # fmt: skip
    step = AggregateStep(window=Window(column="t", gap="2 minutes"), by="k", compute={"n": "count(*)"})

    result = streamed(applied(stream.rows, WatermarkStep(column="t", delay=0), step), tmp_path / "checkpoint")

    assert result == [[(at(0), at(3), "a", 2)]]


def test_wider_windows_of_windows(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(
        spark, tmp_path, "t timestamp",
        [{"t": moment(0, 5)}, {"t": moment(1, 5)}, {"t": moment(4, 59)}],
        [{"t": moment(7)}],
        [{"t": moment(30)}],
    )  # fmt: skip
    minutes = AggregateStep(window=Window(column="t", size="1m"), compute={"n": "count(*)"})
    more = AggregateStep(
        window=Window(column="window_start", size="5m"), compute={"n": "sum(n)", "minutes": "count(*)"}
    )

    result = streamed(applied(stream.rows, WatermarkStep(column="t", delay=0), minutes, more), tmp_path / "checkpoint")

    assert [row for batch in result for row in batch] == [(at(0), at(5), 3, 3), (at(5), at(10), 1, 1)]


def test_a_mistake_names_the_columns(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,))

    with pytest.raises(PipelineError, match="there is no column t"):
        applied(rows, AggregateStep(window=Window(column="t", size=60), compute={"n": "count(*)"}))
    with pytest.raises(PipelineError, match=r"`b` cannot be resolved .* The columns are: a int"):
        applied(rows, AggregateStep(by="b", compute={"n": "count(*)"}))

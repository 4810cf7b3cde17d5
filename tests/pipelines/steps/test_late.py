"""Late rows sent aside: exactly those that Spark drops."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from millstream.pipelines.description.steps import (
    AggregateStep,
    DeduplicateStep,
    FilterStep,
    SqlStep,
    StateStep,
    Step,
    WatermarkStep,
    Window,
)
from millstream.pipelines.spark.steps import late
from support.steps import FileStream, applied, start, static, values

WATERMARK = WatermarkStep(column="t", delay="10s", late="dead-letter")


def row(id_: str, minute: int, second: int = 0) -> dict[str, Any]:
    return {"id": id_, "t": f"2024-01-01T00:{minute:02}:{second:02}Z"}


BATCHES = (
    [row("a", 0, 10), row("b", 1, 10)],
    [row("c", 0, 11), row("d", 5)],  # the watermark was 0 while they came
    [row("e", 0, 12), row("f", 5, 1), row("g", 0, 59), row("h", 1, 30)],  # it was 1:00
    [row("i", 4, 45), row("j", 4, 10), row("k", 2), row("l", 4, 55), row("m", 3, 59)],  # it was 4:50
)


class Run(NamedTuple):
    late: list[str]
    """The ids of the rows that were sent aside."""
    results: int
    dropped: int
    """How many rows Spark says it has dropped."""


def run(rows: DataFrame, step: Step, folder: Path, mode: str, *between: Step) -> Run:
    before = applied(rows, WATERMARK, *between)
    found: list[str] = []
    results = 0

    def handle(batch: DataFrame, number: int) -> None:
        nonlocal results
        offsets = folder / "offsets" / str(number - 1)
        watermark = json.loads(offsets.read_text().splitlines()[1])["batchWatermarkMs"] if number else 0
        batch.persist()  # or Spark would do the step twice, and count what it drops twice
        good, aside = late.split(batch, watermark)
        results += len(good.collect())
        if aside is not None:
            for one in aside.collect():
                assert one["_error"]["error"] == "late"
                assert one["_error"]["stage"] == "watermark"
                assert json.loads(bytes(one["_origin"]["value"]))["id"] == one["id"]
                found.append(one["id"])
        batch.unpersist()

    query = start(late.beside(applied(before, step), before, step), handle, folder, mode)
    query.awaitTermination()
    dropped = sum(
        operator.numRowsDroppedByWatermark for progress in query.recentProgress for operator in progress.stateOperators
    )
    return Run(sorted(found), results, dropped)


MINUTES = AggregateStep(window=Window(column="t", size="1m"), by="id", compute={"n": "count(*)"})
SLIDING = AggregateStep(window=Window(column="t", size="1m", slide="30s"), by="id", compute={"n": "count(*)"})
SESSIONS = AggregateStep(window=Window(column="t", gap="40s"), by="id", compute={"n": "count(*)"})


@pytest.mark.parametrize(
    ("step", "mode", "expected"),
    [
        # windows that ended by 1:00, then by 4:50
        (MINUTES, "append", ["e", "g", "k", "m"]),
        (MINUTES, "update", ["e", "g", "k", "m"]),
        (SLIDING, "append", ["e", "k", "m"]),
        (SESSIONS, "append", ["e", "j", "k", "m"]),
        (DeduplicateStep(by="id", within="10s"), "append", ["e", "g", "i", "j", "k", "m"]),
        (SqlStep(sql="SELECT window(t, '1 minute') w, id, count(*) n FROM stream GROUP BY window(t, '1 minute'), id"),
         "append", ["e", "g", "k", "m"]),
        (SqlStep(sql="SELECT DISTINCT t, id FROM stream"), "append", ["e", "g", "i", "j", "k", "m"]),
    ],
    ids=["tumbling", "tumbling-update", "sliding", "sessions", "deduplicate", "sql", "distinct"],
)  # fmt: skip
def test_exactly_the_rows_that_spark_drops(
    spark: SparkSession, tmp_path: Path, step: Step, mode: str, expected: list[str]
) -> None:
    stream = FileStream(spark, tmp_path, "id string, t timestamp", *BATCHES)

    found = run(stream.rows, step, tmp_path / "checkpoint", mode)

    assert found.late == expected
    assert found.results > 0
    if step is not SLIDING:  # of which one row is in two windows, and Spark counts each
        assert found.dropped == len(expected)


def test_rows_that_were_left_out_before_are_not_late(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "id string, t timestamp", *BATCHES)

    found = run(stream.rows, MINUTES, tmp_path / "checkpoint", "append", FilterStep(where="id <> 'e'"))

    assert found.late == ["g", "k", "m"]


@pytest.mark.parametrize(
    "step",
    [
        AggregateStep(by="id", compute={"n": "count(*)"}),
        AggregateStep(window=Window(column="other", size="1m"), compute={"n": "count(*)"}),
        SqlStep(sql="SELECT id, count(*) n FROM stream GROUP BY id"),
        StateStep(processor=object, by="id", returns="id string", time="processing"),
        FilterStep(where="true"),
    ],
)
def test_steps_that_drop_nothing(step: Step) -> None:
    assert late.deadline(step, "t") is None


def test_without_a_watermark_there_is_nothing_beside(spark: SparkSession, tmp_path: Path) -> None:
    rows = static(spark, "id string, t timestamp", ("a", datetime(2024, 1, 1)))
    results = applied(rows, MINUTES)

    assert late.beside(results, rows, MINUTES) is results
    assert late.split(results, 0) == (results, None)
    assert len(values(results)) == 1


def test_the_error_says_how_late(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "id string, t timestamp", *BATCHES[:1])
    before = applied(stream.rows, WATERMARK)
    messages: list[str] = []

    def handle(batch: DataFrame, _: int) -> None:
        aside = late.split(batch, 1704067260000)[1]
        assert aside is not None
        messages.extend(row["_error"]["message"] for row in aside.collect())

    start(late.beside(applied(before, MINUTES), before, MINUTES), handle, tmp_path / "checkpoint").awaitTermination()

    assert messages == ["its event time 2024-01-01 00:00:10 is behind the watermark 2024-01-01 00:01:00"]

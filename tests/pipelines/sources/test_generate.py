"""The generator: ids without a gap, moments at the rate, and an end."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from millstream.pipelines.description.sources import GeneratorSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sources import generate_stream
from millstream.pipelines.spark.sources.generate import GeneratorReader
from millstream.pipelines.spark.sources.generate_stream import GenerateStreamReader, Offset, batches, split

Read = Callable[[DataFrame], list[Row]]
BEGAN = 1_000_000_000_000_000


class Clock:
    """Microseconds since 1970, and sleeping that takes no time."""

    def __init__(self) -> None:
        self.now = BEGAN

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1_000_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(generate_stream, "_now", lambda: clock.now)
    monkeypatch.setattr(generate_stream, "sleep", clock.sleep)
    return clock


def stream(rate: int, end: int | None = None) -> GenerateStreamReader:
    return GenerateStreamReader(rate=rate, end=end, limit=1000, tasks=4)


def rows(start: Offset, end: Offset, rate: int) -> list[tuple[int, int]]:
    """Ids, and when they were due, in microseconds after the beginning."""
    found = []
    for part in split(start, end, rate, 4):
        for batch in batches(part):
            moments = batch.column(1).cast("int64").to_pylist()
            found += [
                (number, moment - BEGAN) for number, moment in zip(batch.column(0).to_pylist(), moments, strict=True)
            ]
    return found


def test_rows_fall_due_at_the_rate(clock: Clock) -> None:
    source = stream(rate=4)
    start = source.initialOffset()
    first = source.latestOffset(start, ReadAllAvailable())
    assert rows(start, first, 4) == [(0, 0)]
    clock.now += 1_000_000
    second = source.latestOffset(first, ReadAllAvailable())
    assert rows(first, second, 4) == [(1, 250_000), (2, 500_000), (3, 750_000), (4, 1_000_000)]
    assert source.latestOffset(second, ReadAllAvailable()) is second
    assert clock.now == BEGAN + 1_250_000  # it slept until the next is due


def test_a_slow_query_catches_up_in_batches(clock: Clock) -> None:
    source = stream(rate=10)
    offset = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    clock.now += 10_000_000
    ids = []
    for _ in range(4):
        end = source.latestOffset(offset, ReadMaxRows(30))
        ids.append(end["id"])
        offset = end
    assert ids == [31, 61, 91, 101]


def test_after_a_restart_it_goes_on_now(clock: Clock) -> None:
    source = stream(rate=10)
    offset = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    clock.now += 3_600_000_000
    again = stream(rate=10)
    end = again.latestOffset(json.loads(json.dumps(offset)), ReadAllAvailable())
    assert rows(offset, end, 10) == [(1, 3_600_000_000)]


def test_it_ends_at_the_limit(clock: Clock) -> None:
    source = stream(rate=10, end=5)
    clock.now += 60_000_000
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    assert end["id"] == 5
    assert source.latestOffset(end, ReadAllAvailable()) is end


@pytest.mark.parametrize(("limit", "expected"), [(7, 7), (None, 3)])
def test_a_run_that_ends_has_all_rows_at_once(clock: Clock, limit: int | None, expected: int) -> None:
    source = stream(rate=3, end=limit)
    source.prepareForTriggerAvailableNow()
    found, offset = [], source.initialOffset()
    while (end := source.latestOffset(offset, ReadMaxRows(2))) != offset:
        found += rows(offset, end, 3)
        offset = end
    assert [number for number, _ in found] == list(range(expected))
    assert [round(due / 1000) for _, due in found][-3:] == [-1000, -667, -333]


def test_many_rows_are_split(clock: Clock) -> None:
    start, end = {"id": 5, "due": BEGAN}, {"id": 100_005, "due": BEGAN + 10_000_000}
    parts = split(start, end, 10_000, 4)
    assert [(part.first, part.end) for part in parts] == [
        (5, 25_005), (25_005, 50_005), (50_005, 75_005), (75_005, 100_005),
    ]  # fmt: skip
    found = rows(start, end, 10_000)
    assert found[0] == (5, 0)
    assert found[-1] == (100_004, 9_999_900)
    assert split(end, end, 10_000, 4) == []


def reader(context: Context, **fields: Any) -> GeneratorReader:
    return GeneratorReader(GeneratorSource(**fields), "made", context)


def test_columns_are_expressions(context: Context, read: Read) -> None:
    source = reader(context, generate={"n": "id * 10", "day": "date(timestamp)"}, rate=100, limit=3)
    rows = read(source.rows(source.raw_stream()))
    assert [(row["id"], row["n"]) for row in rows] == [(0, 0), (1, 10), (2, 20)]
    assert abs((rows[2]["day"] - datetime.now(UTC).date()).days) <= 1
    assert (rows[0]["_origin"]["topic"], json.loads(rows[0]["_origin"]["value"])["n"]) == ("made", 0)
    assert not source.can_fail
    assert read(source.rows(source.raw_stream())) == []


def test_a_batch_again(context: Context) -> None:
    source = reader(context, generate={"id": "id + 100"}, rate=10)
    assert json.loads(source.initial_offset() or "")["id"] == 0
    raw = source.raw_batch(json.dumps({"id": 2, "due": BEGAN}), json.dumps({"id": 4, "due": BEGAN + 200_000}))
    found = source.rows(raw)
    assert found.columns == ["timestamp", "id", "_origin", "_error"]
    assert [row["id"] for row in found.collect()] == [102, 103]
    assert raw.selectExpr("unix_micros(timestamp)").collect() == [(BEGAN,), (BEGAN + 100_000,)]


def test_it_tells_when_it_is_finished(context: Context) -> None:
    source = reader(context, generate={}, limit=5)
    assert not source.finished('{"id": 4, "due": 0}')
    assert source.finished('{"id": 5, "due": 0}')
    assert not reader(context, generate={}).finished('{"id": 5, "due": 0}')


def test_mistakes_in_expressions(context: Context) -> None:
    with pytest.raises(PipelineError, match=r"generate\.n: .*nothing"):
        reader(context, generate={"n": "nothing + 1"})

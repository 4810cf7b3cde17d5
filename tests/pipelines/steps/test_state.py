"""State of the user's own, by key."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from millstream.pipelines.description.steps import StateStep, WatermarkStep
from millstream.pipelines.errors import PipelineError
from support.steps import FileStream, applied, static, streamed, values


class Running(StatefulProcessor):
    """The sum so far for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "total bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        found = self.total.get()
        total = (found[0] if found else 0) + sum(row.n for row in rows)
        self.total.update((total,))
        yield Row(k=key[0], total=total)

    def close(self) -> None:
        pass


class Reminder(StatefulProcessor):
    """A row one minute of event time after each."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        for row in rows:
            self.handle.registerTimer(int(row.t.timestamp() * 1000) + 60_000)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        yield Row(k=key[0], due=datetime.fromtimestamp(expiredTimerInfo.getExpiryTimeInMs() / 1000))

    def close(self) -> None:
        pass


SUM = StateStep(processor=Running, by="k", returns="k string, total bigint")


def test_the_state_of_a_key_is_kept_between_batches(spark: SparkSession, tmp_path: Path) -> None:
    schema = "k string, n int"
    stream = FileStream(spark, tmp_path, schema, [{"k": "a", "n": 1}, {"k": "b", "n": 5}], [{"k": "a", "n": 2}])

    found = streamed(applied(stream.rows, SUM), tmp_path / "checkpoint", "update")

    assert found == [[("a", 1), ("b", 5)], [("a", 3)]]


def test_it_works_in_a_batch(spark: SparkSession) -> None:
    rows = static(spark, "k string, n int", ("a", 1), ("b", 2), ("a", 3))

    result = applied(rows, SUM)

    assert result.columns == ["k", "total"]
    assert sorted(values(result)) == [("a", 4), ("b", 2)]


def test_timers_of_the_event_time(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(
        spark, tmp_path, "k string, t timestamp",
        [{"k": "a", "t": "2024-01-01T00:00:00Z"}],
        [{"k": "b", "t": "2024-01-01T00:05:00Z"}],
    )  # fmt: skip
    step = StateStep(processor=Reminder, by="k", returns="k string, due timestamp", time="event", output="append")

    found = streamed(applied(stream.rows, WatermarkStep(column="t", delay=0), step), tmp_path / "checkpoint")

    assert found == [[("a", datetime(2024, 1, 1, 0, 1))]]


def test_a_processor_in_a_file(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "processors.py"
    file.write_text(
        "from pyspark.sql import Row\n"
        "from pyspark.sql.streaming import StatefulProcessor\n"
        "class Count(StatefulProcessor):\n"
        "    def init(self, handle):\n        pass\n"
        "    def handleInputRows(self, key, rows, timerValues):\n        yield Row(k=key[0], n=len(list(rows)))\n"
        "    def close(self):\n        pass\n"
    )
    step = StateStep(processor=f"{file}:Count", by="k", returns="k string, n int")

    assert values(applied(static(spark, "k string", ("a",), ("a",)), step)) == [("a", 2)]


def test_what_does_not_fit_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = static(spark, "k string", ("a",))
    stream = FileStream(spark, tmp_path, "k string, t timestamp", []).rows

    with pytest.raises(PipelineError, match=r"str must be a class derived from .*StatefulProcessor"):
        applied(rows, StateStep(processor=str, by="k", returns="k string"))
    with pytest.raises(PipelineError, match="there is no column key"):
        applied(rows, StateStep(processor=Running, by="key", returns="k string"))
    with pytest.raises(PipelineError, match="`time: event` needs a watermark"):
        applied(stream, StateStep(processor=Reminder, by="k", returns="k string", time="event"))

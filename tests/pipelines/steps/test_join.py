"""Joins with tables and with other streams."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import JoinStep, SelectStep, WatermarkStep
from millstream.pipelines.errors import PipelineError
from support.steps import FileStream, applied, offsets, static, streamed, values


def join(**fields: Any) -> JoinStep:
    return JoinStep.model_validate({"with": "users", **fields})


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(2, "b", "Ann")]),
        ("left", [(1, "a", None), (2, "b", "Ann")]),
        ("right", [(2, "b", "Ann"), (3, None, "Bob")]),
        ("full", [(1, "a", None), (2, "b", "Ann"), (3, None, "Bob")]),
        ("semi", [(2, "b")]),
        ("anti", [(1, "a")]),
    ],
)
@pytest.mark.parametrize("on", ["id", "stream.id = users.id"])
def test_every_kind_by_columns_and_by_condition(
    spark: SparkSession, how: str, on: Any, expected: list[tuple[object, ...]]
) -> None:
    rows = static(spark, "id int, what string", (1, "a"), (2, "b"))
    users = static(spark, "id int, name string", (2, "Ann"), (3, "Bob"))

    joined = applied(rows, join(on=on, how=how), users=users)

    assert joined.columns == ["id", "what", *(["name"] if how not in ("semi", "anti") else []), "_origin", "_error"]
    assert sorted(values(joined)) == expected


def test_a_condition_may_be_anything(spark: SparkSession) -> None:
    rows = static(spark, "n int", (1,), (5,))
    ranges = static(spark, "low int, high int, `the name` string", (0, 3, "small"), (4, 9, "big"))

    joined = applied(rows, join(**{"with": "ranges"}, on="n BETWEEN ranges.low AND ranges.high"), ranges=ranges)

    assert sorted(values(joined)) == [(1, 0, 3, "small"), (5, 4, 9, "big")]
    assert sorted(offsets(joined)) == [0, 1]


def test_a_column_that_both_have_is_an_error_unless_it_is_joined_by(spark: SparkSession) -> None:
    rows = static(spark, "id int, name string", (1, "x"))
    users = static(spark, "id int, NAME string", (1, "y"))

    for on in (["id"], "id", "stream.id = users.id"):
        with pytest.raises(PipelineError, match="the stream and users both have the column NAME: drop or rename"):
            applied(rows, join(on=on), users=users)
    assert values(applied(rows, join(on="id", how="semi"), users=users)) == [(1, "x")]


def test_what_is_not_there_is_named(spark: SparkSession) -> None:
    rows = static(spark, "id int", (1,))
    users = static(spark, "key int", (1,))

    with pytest.raises(PipelineError, match="there is no source or table users; did you mean user"):
        applied(rows, join(on="id"), user=users)
    with pytest.raises(PipelineError, match=r"there is no column id\. The columns are: key int"):
        applied(rows, join(on="id"), users=users)
    with pytest.raises(PipelineError, match=r"`stream`.`nr` cannot be resolved"):
        applied(rows, join(on="stream.nr = users.key"), users=users)


def test_a_stream_with_a_table_keeps_the_origin(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "id int", [{"id": 1}], [{"id": 2}])
    users = spark.createDataFrame([(2, "Ann")], "id int, name string")

    joined = applied(stream.rows, join(on="id", how="left"), users=users)

    assert joined.columns == ["id", "name", "_origin", "_error"]
    assert streamed(joined, tmp_path / "checkpoint") == [[(1, None)], [(2, "Ann")]]


def test_two_streams(spark: SparkSession, tmp_path: Path) -> None:
    schema = "id int, t timestamp"
    shown = FileStream(
        spark, tmp_path, schema, [{"id": 1, "t": "2024-01-01T00:00:00Z"}, {"id": 2, "t": "2024-01-01T00:00:00Z"}]
    )
    clicked = FileStream(
        spark, tmp_path, schema, [{"id": 1, "t": "2024-01-01T00:00:05Z"}, {"id": 2, "t": "2024-01-01T00:10:00Z"}]
    )
    watermark = WatermarkStep(column="t", delay="1 minute")
    clicks = applied(clicked.rows, watermark, SelectStep(columns=["id AS click", "t AS clicked"]))
    condition = "stream.id = clicks.click AND clicks.clicked BETWEEN stream.t AND stream.t + INTERVAL 1 MINUTE"

    joined = applied(applied(shown.rows, watermark), join(**{"with": "clicks"}, on=condition), clicks=clicks)

    assert joined.columns == ["id", "t", "click", "clicked"]
    found = streamed(applied(joined, SelectStep(columns=["id", "click"])), tmp_path / "checkpoint")
    assert found == [[(1, 1)]]

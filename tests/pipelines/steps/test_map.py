"""Functions of single rows, in Spark's workers."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

from millstream.pipelines.description.steps import MapStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.steps.map_rows import RowMapper
from support.steps import FileStream, RowError, applied, errors, offsets, static, streamed, values

LIMIT = 3


def describe(row: dict[str, Any]) -> Any:
    if row["a"] is None:
        return None
    if row["a"] > LIMIT:
        raise ValueError(f"{row['a']} is too much")
    return {"b": "x" * row["a"], "c": row["a"] / 2}


def test_rows_in_and_rows_out(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (None,), (2,))

    mapped = applied(rows, MapStep(function=describe, returns="b string, c double"))

    assert mapped.columns == ["b", "c", "_origin", "_error"]
    assert values(mapped) == [("x", 0.5), ("xx", 1.0)]
    assert offsets(mapped) == [0, 2]


def test_an_exception_is_the_error_of_its_row(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (5,), (2,))

    mapped = applied(rows, MapStep(function=describe, returns="b string, c double"))

    assert values(mapped) == [("x", 0.5), ("xx", 1.0)]
    (found,) = errors(mapped)
    assert (found.offset, found.stage, found.error) == (1, "describe", "ValueError")
    assert found.message.startswith("5 is too much (test_map.py:")


def test_a_list_is_several_rows_of_one_origin(spark: SparkSession) -> None:
    rows = static(spark, "text string", ("a b",), ("",), ("c",))

    mapped = applied(rows, MapStep(function=lambda row: [{"w": w} for w in row["text"].split()], returns="w string"))

    assert values(mapped) == [("a",), ("b",), ("c",)]
    assert offsets(mapped) == [0, 0, 2]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"n": "5"}, "it returned '5' for n, which is not of type int"),
        ({"n": 1.5}, "it returned 1.5 for n, which is not of type int"),
        ({"n": 1 << 40}, "it returned 1099511627776 for n, which is not of type int"),
        ({"t": 5}, "it returned 5 for t, which is not of type timestamp"),
        ({"m": 1}, "it returned m, which `returns` does not name"),
        ("text", "it must return a dict, a list of dicts or None, not str"),
        ([1], "it must return dicts; in the list is a value of type int"),
    ],
)
def test_a_wrong_result_is_the_error_of_its_row_alone(result: Any, message: str) -> None:
    error_type = StructType([StructField(name, StringType()) for name in ("stage", "error", "message")])
    schema = StructType().add("n", IntegerType()).add("t", TimestampType()).add("_error", error_type)
    mapper = RowMapper(lambda row: result if row["a"] == 2 else {"n": row["a"]}, "f", schema)

    (batch,) = mapper(iter([pa.RecordBatch.from_pydict({"a": [1, 2, 3]})]))

    assert batch.column("n").to_pylist() == [1, None, 3]
    first, error, last = batch.column("_error").to_pylist()
    assert (first, last) == (None, None)
    assert (error["stage"], error["error"]) == ("f", "TypeError")
    assert error["message"].startswith(message)


def test_types_are_pythons_own(spark: SparkSession) -> None:
    schema = "t timestamp, d date, n decimal(10,2), b binary, m map<string,int>, s struct<x: array<int>>"
    row = (datetime(2024, 1, 1, 12), date(2024, 1, 2), Decimal("1.50"), bytearray(b"b"), {"k": 1}, ([1, 2],))
    seen = "f boolean"

    def check(row: dict[str, Any]) -> dict[str, Any]:
        return {
            "f": row == {
                "t": datetime(2024, 1, 1, 12, tzinfo=UTC), "d": date(2024, 1, 2), "n": Decimal("1.50"), "b": b"b",
                "m": {"k": 1}, "s": {"x": [1, 2]},
            },
            **row,
        }  # fmt: skip

    mapped = applied(static(spark, schema, row), MapStep(function=check, returns=f"{seen}, {schema}"))

    ((fine, *rest),) = values(mapped)
    assert fine is True
    assert rest[:5] == list(row[:5])
    assert rest[5].x == [1, 2]


def test_rows_without_origin_are_mapped_as_well(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (9,)).drop("_origin", "_error")

    mapped = applied(rows, MapStep(function=describe, returns="b string"))

    assert mapped.columns == ["b", "_error"]
    assert errors(mapped)[0] == RowError(None, "describe", "TypeError", "it returned c, which `returns` does not name")


def test_a_file_and_what_lies_beside_it_go_to_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "words_beside.py").write_text("def loud(text):\n    return text.upper()\n")
    file = tmp_path / "rows.py"
    file.write_text("import words_beside\ndef shout(row):\n    return {'a': words_beside.loud(row['a'])}\n")

    mapped = applied(static(spark, "a string", ("x",)), MapStep(function=f"{file}:shout", returns="a string"))

    assert values(mapped) == [("X",)]


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "a int", [{"a": 1}], [{"a": 7}, {"a": 2}])

    mapped = applied(stream.rows, MapStep(function=describe, returns="b string, c double"))

    assert streamed(mapped, tmp_path / "checkpoint") == [[("x", 0.5)], [("xx", 1.0)]]


def test_returns_must_be_columns(spark: SparkSession) -> None:
    for returns in ("b strin", "int", "b"):
        with pytest.raises(PipelineError, match="`returns` must be columns with their types"):
            applied(static(spark, "a int", (1,)), MapStep(function=describe, returns=returns))

"""Functions of DataFrames."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millstream.pipelines.description.steps import PythonStep
from millstream.pipelines.errors import PipelineError
from support.steps import applied, offsets, static, values

HERE = "millstream.pipelines.spark.rows"


def doubled(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("a * 2 AS a", "_origin", "_error")


def with_names(rows: DataFrame, users: DataFrame, limit: int = 5) -> DataFrame:
    return rows.join(users, "id").where(f"id < {limit}")


def test_a_function_may_do_what_it_likes(spark: SparkSession) -> None:
    result = applied(static(spark, "a int", (1,), (2,)), PythonStep(function=doubled))

    assert values(result) == [(2,), (4,)]
    assert offsets(result) == [0, 1]


def test_a_function_may_drop_the_hidden_columns(spark: SparkSession) -> None:
    result = applied(static(spark, "a int", (1,)), PythonStep(function=lambda rows: rows.select("a")))

    assert result.columns == ["a"]


def test_parameters_are_tables_of_their_name(spark: SparkSession) -> None:
    users = static(spark, "id int, name string", (1, "Ann"), (7, "Bob"))

    result = applied(static(spark, "id int", (1,), (7,)), PythonStep(function=with_names), users=users)

    assert values(result) == [(1, "Ann")]


def test_a_function_in_a_file_and_one_in_a_module(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("FACTOR = 10\n")
    file = tmp_path / "steps.py"
    file.write_text("import beside\ndef times(rows):\n    return rows.selectExpr(f'a * {beside.FACTOR} AS a')\n")
    rows = static(spark, "a int", (1,))

    assert values(applied(rows, PythonStep(function=f"{file}:times"))) == [(10,)]
    assert applied(rows, PythonStep(function=f"{HERE}:without_hidden")).columns == ["a"]


def fails(rows: DataFrame) -> DataFrame:
    raise RuntimeError("no time")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fails, "fails failed: RuntimeError: no time"),
        (lambda rows: None, r"<lambda> must return a DataFrame; it returned nothing \(is a `return` missing\?\)"),
        (lambda rows: 5, "must return a DataFrame; it returned a value of type int"),
        (lambda rows: rows.select("nothing"), "`nothing` cannot be resolved"),
        (with_names, "has the parameter users, and there is no source or table of that name: there are none"),
        (f"{HERE}:no_such", "no_such cannot be loaded"),
        ("no.such.module:f", "no.such.module:f cannot be loaded: ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_with_its_place(spark: SparkSession, function: Any, message: str) -> None:
    with pytest.raises(PipelineError, match=message) as caught:
        applied(static(spark, "id int", (1,)), PythonStep(function=function))

    assert str(caught.value).startswith("p.yaml:7: ")

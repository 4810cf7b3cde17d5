"""Cast: good values change their type, bad ones are errors of their rows."""

from datetime import date

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import CastStep
from millstream.pipelines.errors import PipelineError
from support.steps import RowError, applied, errors, offsets, static, values


def test_values_get_the_new_types(spark: SparkSession) -> None:
    rows = static(spark, "a string, b int, c string", ("12", 1, "2024-02-29"), (None, None, None))

    cast = applied(rows, CastStep(columns={"a": "int", "C": "date", "b": "string"}))

    assert cast.columns == ["a", "b", "c", "_origin", "_error"]
    assert values(cast) == [(12, "1", date(2024, 2, 29)), (None, None, None)]


def test_a_value_that_cannot_be_cast_is_an_error_of_its_row_and_not_a_null(spark: SparkSession) -> None:
    rows = static(spark, "a string, b string", ("1", "x"), ("no", "y"), ("3", "z"), ("x" * 500, "y"))

    cast = applied(rows, CastStep(columns={"a": "int"}))

    assert values(cast) == [(1, "x"), (3, "z")]
    assert offsets(cast.where("_error IS NULL")) == [0, 2]
    assert errors(cast) == [
        RowError(1, "cast", "cast", "column a: 'no' is not a value of type int"),
        RowError(3, "cast", "cast", f"column a: '{'x' * 100}' is not a value of type int"),
    ]


def test_the_first_of_several_bad_values_is_told(spark: SparkSession) -> None:
    rows = static(spark, "a string, b string", ("no", "never"))

    assert errors(applied(rows, CastStep(columns={"b": "date", "a": "int"})))[0].message.startswith("column b: 'never'")


def test_rows_without_an_origin_can_be_cast_as_well(spark: SparkSession) -> None:
    rows = static(spark, "a string", ("1",), ("no",)).drop("_origin", "_error")

    cast = applied(rows, CastStep(columns={"a": "int"}))

    assert cast.columns == ["a", "_error"]
    assert values(cast) == [(1,)]


def test_an_unknown_type_or_column_is_a_mistake_in_the_pipeline(spark: SparkSession) -> None:
    rows = static(spark, "a string", ("1",))

    with pytest.raises(PipelineError, match=r"(?i)integr"):
        applied(rows, CastStep(columns={"a": "integr"}))
    with pytest.raises(PipelineError, match="there is no column b"):
        applied(rows, CastStep(columns={"b": "int"}))

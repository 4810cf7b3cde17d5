"""Filter, select, add and drop."""

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import AddStep, DropStep, FilterStep, SelectStep, Step
from millstream.pipelines.errors import PipelineError
from support.steps import PLACE, applied, offsets, static, values


def test_a_filter_keeps_the_rows_for_which_the_condition_is_true(spark: SparkSession) -> None:
    rows = static(spark, "a int, b string", (1, "x"), (2, None), (None, "z"), (4, "w"))

    kept = applied(rows, FilterStep(where="a > 1"))

    assert values(kept) == [(2, None), (4, "w")]
    assert offsets(kept) == [1, 3]


def test_a_selection_takes_columns_and_expressions_and_keeps_the_origin(spark: SparkSession) -> None:
    rows = static(spark, "a int, `b c` string", (1, "x"))

    chosen = applied(rows, SelectStep(columns=["upper(`b c`) AS b", "a"]))

    assert chosen.columns == ["b", "a", "_origin", "_error"]
    assert values(chosen) == [("X", 1)]


def test_a_star_in_a_selection_is_all_that_a_user_sees(spark: SparkSession) -> None:
    rows = static(spark, "a int, `b.c` string", (1, "x"))

    chosen = applied(rows, SelectStep(columns=["*", "a + 1 AS n"]))

    assert chosen.columns == ["a", "b.c", "n", "_origin", "_error"]
    assert values(chosen) == [(1, "x", 2)]


def test_added_columns_can_use_those_before_them_and_replace_others(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,))

    more = applied(rows, AddStep(columns={"b": "a + 1", "c": "b * 10", "a": "a + c"}))

    assert values(more) == [(21, 2, 20)]
    assert offsets(more) == [0]


def test_dropped_columns_go_and_the_hidden_ones_stay(spark: SparkSession) -> None:
    rows = static(spark, "a int, b int, c int", (1, 2, 3))

    fewer = applied(rows, DropStep(columns=["A", "c"]))

    assert fewer.columns == ["b", "_origin", "_error"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (FilterStep(where="colour = 1"), "`colour` cannot be resolved (line 1, column 1 of the SQL). The columns"),
        (FilterStep(where="a >"), "Syntax error at or near end of input"),
        (SelectStep(columns="nothing"), "`nothing` cannot be resolved"),
        (SelectStep(columns=["a", "color AS a"]), "two columns are called a: give one of them another name"),
        (SelectStep(columns=["a AS _error"]), "_error is kept for the row's origin and error"),
        (AddStep(columns={"b": "no_such_function(a)"}), "Cannot resolve routine `no_such_function`"),
        (DropStep(columns="colour"), "there is no column colour; did you mean color? The columns are: a int"),
        (DropStep(columns="_origin"), "there is no column _origin"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(spark: SparkSession, step: Step, message: str) -> None:
    rows = static(spark, "a int, color string", (1, "x"))

    with pytest.raises(PipelineError) as caught:
        applied(rows, step)

    text = str(caught.value)
    assert text.startswith("p.yaml:7: steps[0]: ")
    assert message in text
    assert "\n" not in text
    assert "SQLSTATE" not in text
    assert caught.value.place == PLACE

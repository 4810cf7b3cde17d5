"""SQL over the stream and the tables."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from millstream.pipelines.description.steps import SqlStep
from millstream.pipelines.errors import PipelineError
from support.steps import FileStream, applied, offsets, start, static, streamed, values


def test_a_plain_select_keeps_the_origin_of_its_rows(spark: SparkSession) -> None:
    rows = static(spark, "a int, b string", (1, "x"), (2, "y"), (3, "z"))

    result = applied(rows, SqlStep(sql="SELECT upper(b) AS b, a + 1 AS n FROM stream WHERE a <> 2"))

    assert result.columns == ["b", "n", "_origin", "_error"]
    assert values(result) == [("X", 2), ("Z", 4)]
    assert offsets(result) == [0, 2]


def test_a_star_shows_no_hidden_column_twice(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,))

    assert applied(rows, SqlStep(sql="SELECT *, a + 1 AS b FROM stream")).columns == ["a", "b", "_origin", "_error"]


def test_a_join_with_a_table_keeps_the_origin(spark: SparkSession) -> None:
    rows = static(spark, "id int", (1,), (2,))
    users = static(spark, "id int, name string", (2, "Ann"))

    joined = applied(
        rows, SqlStep(sql="SELECT s.*, u.name FROM stream s LEFT JOIN users u ON s.id = u.id"), users=users
    )

    assert sorted(values(joined)) == [(1, None), (2, "Ann")]
    assert sorted(offsets(joined)) == [0, 1]


def test_aggregates_and_distinct_see_only_the_columns_of_the_user(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (1,), (2,))

    assert values(applied(rows, SqlStep(sql="SELECT a, count(*) AS n FROM stream GROUP BY a ORDER BY a"))) == [
        (1, 2),
        (2, 1),
    ]
    assert sorted(values(applied(rows, SqlStep(sql="SELECT DISTINCT * FROM stream")))) == [(1,), (2,)]


def test_an_aggregate_that_only_spark_knows_is_run_as_it_is(spark: SparkSession) -> None:
    rows = static(spark, "a int", (1,), (3,))

    result = applied(rows, SqlStep(sql="SELECT try_avg(a) AS m FROM stream"))

    assert result.columns == ["m"]
    assert values(result) == [(2.0,)]


def test_the_names_are_gone_afterwards(spark: SparkSession) -> None:
    applied(static(spark, "a int", (1,)), SqlStep(sql="SELECT * FROM stream"), users=static(spark, "a int", (1,)))

    assert not {"stream", "users"} & {table.name for table in spark.catalog.listTables()}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT b FROM stream", "`b` cannot be resolved (line 1, column 8 of the SQL). The columns are: a int"),
        ("SELECT a\nFROM stream WHERE\n x = 1", "`x` cannot be resolved (line 3, column 2 of the SQL)"),
        ("SELECT a FORM stream", "Syntax error at or near '`stream`'"),
        ("SELECT a FROM streams", "The table or view `streams` cannot be found"),
        ("SELECT (a FROM stream", "Syntax error at or near"),
        ("SELECT a, count(*) FROM stream", "The query does not include a GROUP BY clause"),
    ],
)
def test_a_mistake_is_told_in_sparks_own_words_with_its_place(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        applied(static(spark, "a int", (1,)), SqlStep(sql=sql))

    assert str(caught.value).startswith("p.yaml:7: steps[0]: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tables_made_before_can_be_used_inside_a_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A micro-batch has a session of its own; tables belong to the one that was there first."""
    users = static(spark, "id int, name string", (2, "Ann"))
    found: list[tuple[object, ...]] = []

    def handle(batch: DataFrame, _: int) -> None:
        found.extend(values(applied(batch, SqlStep(sql="SELECT name FROM stream JOIN users USING (id)"), users=users)))

    stream = FileStream(spark, tmp_path, "id int", [{"id": 1}, {"id": 2}], [{"id": 2}])
    start(stream.rows, handle, tmp_path / "checkpoint").awaitTermination()

    assert found == [("Ann",), ("Ann",)]


def test_aggregation_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path, "k string", [{"k": "a"}, {"k": "b"}], [{"k": "a"}])

    counted = applied(stream.rows, SqlStep(sql="SELECT k, count(*) AS n FROM stream GROUP BY k"))

    assert streamed(counted, tmp_path / "checkpoint", "update") == [[("a", 1), ("b", 1)], [("a", 2)]]

"""Parse: known formats, regular expressions, JSON, CSV and key=value."""

from datetime import date, datetime

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines.description.steps import ParseStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import modes
from support.steps import applied, errors, offsets, static, texts, values, with_hidden

LINE = '64.242.88.10 - - [08/Mar/2004:07:54:30 -0800] "GET /x HTTP/1.1" 401 12846'
PARSED = ("64.242.88.10", None, None, datetime(2004, 3, 8, 15, 54, 30), date(2004, 3, 8), "GET", "/x", "HTTP/1.1", 401)


def test_an_access_log(spark: SparkSession) -> None:
    rows = texts(
        spark,
        LINE,
        LINE.replace("12846", "-").replace("- -", "id frank"),
        f'{LINE} "-" "curl/8"',
        "2001:db8::1 - - [01/Jan/2024:00:00:00 +0000] \"-\" 408 0",
        r'h - - [01/Jan/2024:00:00:00 +0000] "GET /a\"b HTTP/1.1" 200 1',
    )  # fmt: skip

    parsed = applied(rows, ParseStep(format="apache-access-log"))

    assert parsed.schema.simpleString().startswith(
        "struct<ip:string,ident:string,user:string,time:timestamp,date:date,method:string,request_url:string,"
        "protocol_type:string,status_code:int,bytes:bigint,_origin:"
    )
    start = datetime(2024, 1, 1)
    assert values(parsed) == [
        (*PARSED, 12846),
        ("64.242.88.10", "id", "frank", *PARSED[3:], None),
        (*PARSED, 12846),
        ("2001:db8::1", None, None, start, start.date(), None, None, None, 408, 0),
        ("h", None, None, start, start.date(), "GET", r"/a\"b", "HTTP/1.1", 200, 1),
    ]


def test_what_is_no_line_of_the_log_is_an_error_of_its_row(spark: SparkSession) -> None:
    rows = texts(spark, LINE, "no line", None, LINE.replace("Mar", "Mad"), LINE.replace("12846", "9" * 30), "")

    parsed = applied(rows, ParseStep(format="apache-access-log"))

    assert offsets(parsed.where("_error IS NULL")) == [0]
    assert [(found.offset, found.stage, found.error, found.message) for found in errors(parsed)] == [
        (1, "parse", "parse", "this is not a line of apache-access-log: 'no line'"),
        (2, "parse", "parse", "column value is null"),
        (3, "parse", "parse", "column time: '08/Mad/2004:07:54:30 -0800' is not a value of type timestamp"),
        (4, "parse", "parse", f"column bytes: '{'9' * 30}' is not a value of type bigint"),
        (5, "parse", "parse", "this is not a line of apache-access-log: ''"),
    ]


def test_a_combined_log_has_referrer_and_agent(spark: SparkSession) -> None:
    rows = texts(spark, f'{LINE} "http://a/" "Mozilla \\"5\\""', f'{LINE} "-" "-"', LINE)

    parsed = applied(rows, ParseStep(format="apache-combined-log"))

    assert values(parsed) == [(*PARSED, 12846, "http://a/", 'Mozilla \\"5\\"'), (*PARSED, 12846, None, None)]
    assert offsets(parsed.where("_error IS NOT NULL")) == [2]


def test_a_long_line_does_not_exhaust_the_stack(spark: SparkSession) -> None:
    rows = texts(spark, f'{LINE.replace("/x", "/" + "x" * 100_000)} "{"r" * 100_000}" "{"a" * 100_000}"')

    parsed = applied(rows, ParseStep(format="apache-combined-log"))

    assert [len(values(parsed)[0][index]) for index in (6, 10, 11)] == [100_001, 100_000, 100_000]


def test_a_regular_expression_gives_its_named_groups(spark: SparkSession) -> None:
    rows = texts(spark, "x user=7 at home", "user=8", "nobody", "line\nuser=9 at\twork\nend")

    parsed = applied(rows, ParseStep(format=r"user=(?<user_id>\d)(?: at\s(?<place>\w+))?"))

    assert parsed.columns == ["user_id", "place", "_origin", "_error"]
    assert values(parsed) == [("7", "home"), ("8", ""), ("9", "work")]
    assert [found.message for found in errors(parsed)] == ["this is not matched by the expression: 'nobody'"]


def test_groups_get_the_types_of_the_schema(spark: SparkSession) -> None:
    rows = texts(spark, "a=1 b=", "a=x b=2.5", "a=99999999999 b=1")
    step = ParseStep(format=r"a=(?<a>\w+) b=(?<b>\S*)", schema="b double, a int")

    parsed = applied(rows, step)

    assert parsed.columns[:2] == ["b", "a"]
    assert values(parsed) == [(None, 1)]
    assert [found.message for found in errors(parsed)] == [
        "column a: 'x' is not a value of type int",
        "column a: '99999999999' is not a value of type int",
    ]


def test_a_text_with_the_separator_in_a_group_is_not_matched_wrongly(spark: SparkSession) -> None:
    rows = texts(spark, "a=1\ufdd02 b=3")

    parsed = applied(rows, ParseStep(format=r"a=(?<a>\S+) b=(?<b>\S+)"))

    assert len(errors(parsed)) == 1


def test_json_by_its_schema(spark: SparkSession) -> None:
    rows = texts(spark, '{"id": 1, "tags": ["a"], "more": 2}', '{"id": "x"}', "{", '{"tags": null}', "[1]", "7")

    parsed = applied(rows, ParseStep(format="json", schema="id bigint, tags array<string>"))

    assert values(parsed) == [(1, ["a"]), (None, None)]
    assert [found.offset for found in errors(parsed)] == [1, 2, 4, 5]
    assert errors(parsed)[0].message == 'this is not the JSON wanted (id bigint, tags array<string>): \'{"id": "x"}\''


def test_csv_by_its_schema(spark: SparkSession) -> None:
    rows = texts(spark, '1,"a, b",2024-02-29', "x,y,2024-01-01", "1,2", "2,,")

    parsed = applied(rows, ParseStep(format="csv", schema="id int, `the name` string, day date"))

    assert values(parsed) == [(1, "a, b", date(2024, 2, 29)), (2, None, None)]
    assert [found.offset for found in errors(parsed)] == [1, 2]


def test_key_value_by_its_schema(spark: SparkSession) -> None:
    rows = texts(
        spark,
        r'level=info took=12 user="Ann \"A\" B" user_id=9',
        "took=x",
        "nothing here",
        'empty="" level=',
    )

    parsed = applied(rows, ParseStep(format="key-value", schema="level string, took int, user string, empty string"))

    assert values(parsed) == [("info", 12, 'Ann "A" B', None), ("", None, None, "")]
    assert [(found.offset, found.message) for found in errors(parsed)] == [
        (1, "column took: 'x' is not a value of type int"),
        (2, "this is not text with one of the keys wanted: 'nothing here'"),
    ]


def test_the_column_may_have_another_name_and_may_stay(spark: SparkSession) -> None:
    rows = static(spark, "n int, `the line` string", (1, "a=5"))
    step = ParseStep(format=r"a=(?<a>\d)", column="the line", keep=True)

    assert values(applied(rows, step)) == [(1, "a=5", "5")]


def test_a_group_may_replace_the_column_that_was_read(spark: SparkSession) -> None:
    rows = texts(spark, "a=5")

    assert values(applied(rows, ParseStep(format=r"a=(?<value>\d)"))) == [("5",)]


def test_bytes_are_read_as_text(spark: SparkSession) -> None:
    rows = static(spark, "value binary", (bytearray(b"a=5"),))

    assert values(applied(rows, ParseStep(format=r"a=(?<a>\d)"))) == [("5",)]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (ParseStep(format=r"a=(?<n>\d)"), "parsing gives the column n, which the rows have already"),
        (ParseStep(format=r"(?<a>\d)", column="line"), "there is no column line"),
        (ParseStep(format=r"(?<a>\d)", schema="b int"), "`schema` names b, and the expression has no such group"),
        (ParseStep(format="json", schema="id bigin"), "`schema` must be columns with their types"),
        (ParseStep(format="key-value"), "key-value needs `schema`"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_step(spark: SparkSession, step: ParseStep, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        applied(static(spark, "n int, value string", (1, "x")), step)


def test_parsing_is_sql_alone_and_can_be_done_in_real_time(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    for step in (
        ParseStep(format="apache-combined-log"),
        ParseStep(format=r"a=(?<a>\d)", schema="a int"),
        ParseStep(format="json", schema="a int"),
        ParseStep(format="csv", schema="a int"),
        ParseStep(format="key-value", schema="a int"),
    ):
        parsed = applied(with_hidden(stream), step)

        assert parsed.isStreaming
        assert modes._refusal_of_plan(parsed) is None

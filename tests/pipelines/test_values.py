"""Values: what decodes into which columns, what is an error and which, and what comes back after encoding."""

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.description.sources import Table, TopicSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import ORIGIN_TYPE
from millstream.pipelines.spark.schemas import given
from millstream.pipelines.spark.values import decode, encode, refusal

RAW = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def records(spark: SparkSession, values: Iterable[str | bytes | None], key: bytes | None = None) -> DataFrame:
    """Records as Spark's Kafka source gives them, one for each value, offsets from 0."""
    rows = [
        (key, value.encode() if isinstance(value, str) else value, "t", 3, offset, MOMENT, 0, [("h", b"x")])
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, RAW)


def decoded(
    spark: SparkSession, values: Iterable[str | bytes | None], schema: str | None = None, **fields: Any
) -> list[Row]:
    source = TopicSource(topic="t", schema=schema or "infer", **fields)
    rows = decode(records(spark, values), source, None if schema is None else given(schema))
    return rows.orderBy("_origin.offset").collect()


def kinds(rows: list[Row]) -> list[str | None]:
    return [None if row["_error"] is None else row["_error"]["error"] for row in rows]


def test_text_is_the_column_value_and_must_be_utf8(spark: SparkSession) -> None:
    rows = decoded(spark, ["héllo", b"\xff\xfe", None], value="text")
    assert kinds(rows) == [None, "not-utf8", None]
    assert rows[0]["value"] == "héllo"
    assert rows[2]["value"] is None
    assert rows[0].asDict().keys() == {"value", "_origin", "_error"}


def test_raw_takes_any_bytes(spark: SparkSession) -> None:
    rows = decoded(spark, [b"\xff\x00", None], value="raw")
    assert [row["value"] for row in rows] == [b"\xff\x00", None]
    assert kinds(rows) == [None, None]


def test_the_origin_is_the_record_as_it_was_read(spark: SparkSession) -> None:
    rows = decode(records(spark, ["no json"], key=b"k"), TopicSource(topic="t"), given("id bigint"))
    assert rows.schema["_origin"].dataType.simpleString() == ORIGIN_TYPE.replace(": ", ":").replace(", ", ",")
    (row,) = rows.select("_origin.*").collect()
    assert row.asDict() == {
        "topic": "t", "partition": 3, "offset": 0, "timestamp": row["timestamp"], "key": b"k", "value": b"no json",
        "headers": [Row(key="h", value=b"x")],
    }  # fmt: skip
    assert rows.select(F.unix_seconds("_origin.timestamp")).collect()[0][0] == MOMENT.timestamp()


def test_the_key_becomes_a_column_on_request(spark: SparkSession) -> None:
    raw = records(spark, ["x"], key=b"k")
    assert decode(raw, TopicSource(topic="t", value="text", key="text"), None).collect()[0]["key"] == "k"
    assert decode(raw, TopicSource(topic="t", value="text", key="raw"), None).collect()[0]["key"] == b"k"
    table = Table(topic="t", schema="id bigint")
    assert decode(raw, table, given("id bigint")).columns == ["key", "id", "_origin", "_error"]
    with pytest.raises(PipelineError, match="column `key` already"):
        decode(raw, TopicSource(topic="t", key="text"), given("key string"))


def test_json_of_the_schema(spark: SparkSession) -> None:
    schema = "id bigint, name string, at timestamp, price decimal(10,2), tags array<string>, more struct<x: int>"
    value = {"id": 1, "name": "a", "at": "2026-01-31T12:00:00Z", "price": 1.5, "tags": ["x"], "more": {"x": 2}, "y": 0}
    rows = decoded(spark, [json.dumps(value), "{}", '{"id": null}'], schema)
    assert kinds(rows) == [None, None, None]
    first = rows[0].asDict(recursive=True)
    assert (first["id"], first["name"], first["price"], first["tags"], first["more"]) == (
        1, "a", Decimal("1.50"), ["x"], {"x": 2},
    )  # fmt: skip
    assert rows[1]["id"] is None


NOT_JSON = [
    "",
    " ",
    "{",
    '{"id": 1',
    "xyz",
    '{"id": 1} xyz',
    '{"id": 1}{"id": 2}',
    '{"id": 1}\n{"id": 2}',
    '{"id": 1}}',
]
NO_OBJECT = ["12", '"text"', "null", '[{"id": 1}]', "true"]
WRONG_TYPE = [
    '{"id": "x"}',
    '{"id": 1.5}',
    '{"id": 99999999999999999999}',
    '{"more": {"x": "q"}}',
    '{"tags": [1, "x"]}',
]


def test_json_that_does_not_decode_is_an_error_and_never_a_silent_null(spark: SparkSession) -> None:
    values = [*NOT_JSON, *NO_OBJECT, *WRONG_TYPE, None, b'{"id": 1, "name": "\xff"}']
    rows = decoded(spark, values, "id bigint, name string, more struct<x: int>, tags array<int>")
    expected = ["not-json"] * len(NOT_JSON) + ["not-an-object"] * len(NO_OBJECT) + ["wrong-type"] * len(WRONG_TYPE)
    assert dict(zip(values, kinds(rows), strict=True)) == dict(
        zip(values, [*expected, "no-value", "not-utf8"], strict=True)
    )
    assert {row["_error"]["stage"] for row in rows} == {"source"}


def test_the_message_names_the_column_and_the_value(spark: SparkSession) -> None:
    (row,) = decoded(spark, ['{"id": "x", "name": "fine", "n": 1.5}'], "id bigint, name string, n int")
    assert row["_error"]["message"] == "id is x, which is not bigint; n is 1.5, which is not int"


def test_a_wide_schema_has_a_plain_message(spark: SparkSession) -> None:
    (row,) = decoded(spark, ['{"c1": "x"}'], ", ".join(f"c{number} int" for number in range(101)))
    assert row["_error"]["error"] == "wrong-type"


def test_tombstones_can_be_skipped(spark: SparkSession) -> None:
    rows = decoded(spark, [None, '{"id": 1}'], "id bigint", options={"value.tombstones": "skip"})
    assert [(row["id"], row["_error"]) for row in rows] == [(1, None)]


def test_a_filter_does_not_parse_a_second_time(spark: SparkSession) -> None:
    rows = decode(records(spark, ['{"id": 1}']), TopicSource(topic="t"), given("id bigint"))
    chosen = rows.where("_error IS NULL").where("id > 0").select("id")
    plan = chosen._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count('{"value":') == 1
    assert chosen.collect() == [Row(id=1)]


def test_csv(spark: SparkSession) -> None:
    values = ["1,a", '"2","b,c"', "3,", "4,d\r\n", '5,"e\nf"']
    rows = decoded(spark, values, "id bigint, name string", value="csv")
    assert kinds(rows) == [None] * 5
    assert [(row["id"], row["name"]) for row in rows] == [(1, "a"), (2, "b,c"), (3, None), (4, "d"), (5, "e\nf")]


def test_csv_that_does_not_fit(spark: SparkSession) -> None:
    values = ["1", "1,a,b", "x,a", "1,a\n2,b", "", "  ", None]
    rows = decoded(spark, values, "id bigint, name string", value="csv")
    assert kinds(rows) == ["not-csv"] * 6 + ["no-value"]


def test_csv_takes_options(spark: SparkSession) -> None:
    (row,) = decoded(spark, ["1;a"], "id bigint, name string", value="csv", options={"value.sep": ";"})
    assert (row["id"], row["name"]) == (1, "a")


AVRO = {
    "type": "record",
    "name": "Person",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "home", "type": {"type": "record", "name": "Home", "fields": [{"name": "city", "type": "string"}]}},
    ],
}
GOOD_AVRO = b"\x02\x02\x02x\x0aParis"
"""id 1, name x, city Paris."""
CLAIMS_2_GB = b"\x02\x02\x80\xd0\xac\xf3\x0eabc"


@pytest.fixture
def avsc(tmp_path: Path) -> str:
    file = tmp_path / "person.avsc"
    file.write_text(json.dumps(AVRO))
    return str(file)


def test_avro(spark: SparkSession, avsc: str) -> None:
    values = [GOOD_AVRO, b"", GOOD_AVRO[:-2], CLAIMS_2_GB, None]
    rows = decoded(spark, values, avsc, value="avro")
    assert kinds(rows) == [None, "not-avro", "not-avro", "not-avro", "no-value"]
    assert rows[0].asDict(recursive=True)["home"] == {"city": "Paris"}
    assert (rows[0]["id"], rows[0]["name"]) == (1, "x")


def test_avro_in_confluents_frame(spark: SparkSession, avsc: str) -> None:
    values = [b"\0\0\0\0\x07" + GOOD_AVRO, b"\1\0\0\0\x07" + GOOD_AVRO, b"\0\0"]
    rows = decoded(spark, values, avsc, value="avro", options={"value.confluent": "true"})
    assert kinds(rows) == [None, "not-framed", "not-framed"]
    assert rows[0]["id"] == 1


def test_avro_that_is_not_a_record_is_the_column_value(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "text.avsc"
    file.write_text('"string"')
    (row,) = decoded(spark, [b"\x0aParis"], str(file), value="avro")
    assert (row["value"], row["_error"]) == ("Paris", None)


ORDER = {
    "type": "object",
    "required": ["id", "state", "note"],
    "additionalProperties": False,
    "$defs": {"money": {"type": "number", "minimum": 0}},
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 1000},
        "state": {"enum": ["open", "paid"]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$", "minLength": 2, "maxLength": 2},
        "price": {"$ref": "#/$defs/money"},
        "note": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1, "uniqueItems": True},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["sku"],
                "additionalProperties": False,
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "exclusiveMinimum": 0}},
            },
        },
        "limits": {"type": "object", "additionalProperties": {"type": "integer", "multipleOf": 5}, "maxProperties": 2},
        "maybe": {"anyOf": [{"type": "integer", "maximum": 5}, {"type": "null"}]},
    },
}
FINE = {"id": 1, "state": "open", "note": None}
AGAINST_THE_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"id": None}, "$.id is missing"),
    ({"id": 0}, "$.id is 0, must be at least 1"),
    ({"id": 1001}, "$.id is 1001, must be at most 1000"),
    ({"state": "lost"}, '$.state is lost, must be one of ["open", "paid"]'),
    ({"code": "abc"}, "$.code is abc, must be 2 long or less; $.code is abc, must match ^[A-Z]{2}$"),
    ({"price": -1.5}, "$.price is -1.5, must be at least 0"),
    ({"tags": []}, "$.tags is [], must have 1 items or more"),
    ({"tags": ["a", "a"]}, "$.tags is [a, a], must not have an item twice"),
    ({"tags": ["a", "long"]}, "$.tags[*] is long, must be 3 long or less"),
    ({"lines": [{"sku": "x"}, {"count": 1}]}, "$.lines[*].sku is missing"),
    ({"lines": [{"sku": "x", "count": 0}]}, "$.lines[*].count is 0, must be more than 0"),
    ({"lines": [{"sku": "x", "extra": 0}]}, "$.lines[*] must not have extra"),
    ({"limits": {"a": 5, "b": 7}}, "$.limits.* is 7, must be a multiple of 5"),
    ({"limits": {"a": 5, "b": 5, "c": 5}}, "$.limits is {a -> 5, b -> 5, c -> 5}, must have 2 or fewer"),
    ({"maybe": 6}, "$.maybe is 6, must be at most 5"),
    ({"extra": 1, "more": 2}, "$ must not have extra, more"),
]


def json_schema_file(folder: Path, document: object) -> str:
    file = folder / "schema.json"
    file.write_text(json.dumps(document))
    return str(file)


def test_json_schema_checks_what_types_cannot_say(spark: SparkSession, tmp_path: Path) -> None:
    schema = json_schema_file(tmp_path, ORDER)
    fine = {
        **FINE, "code": "AB", "price": 2, "at": "2026-01-31T12:00:00Z", "tags": ["a"], "limits": {"a": 5},
        "maybe": None, "lines": [{"sku": "x", "count": 1}],
    }  # fmt: skip
    bad = [json.dumps({**FINE, **change}) for change, _ in AGAINST_THE_SCHEMA]
    values = [json.dumps(FINE), json.dumps(fine), *bad, json.dumps({"id": 1, "state": "open"}), '{"id": "x"}']
    rows = decoded(spark, values, schema, value="json-schema")
    assert [row["_error"] and row["_error"]["message"] for row in rows] == [
        None, None, *(message for _, message in AGAINST_THE_SCHEMA),
        "$.note is missing", "id is x, which is not bigint",
    ]  # fmt: skip
    assert kinds(rows)[2:] == ["against-schema"] * (len(bad) + 1) + ["wrong-type"]


def test_with_plain_json_a_json_schema_gives_the_columns_only(spark: SparkSession, tmp_path: Path) -> None:
    rows = decoded(spark, ['{"id": 0}'], json_schema_file(tmp_path, ORDER), value="json")
    assert kinds(rows) == [None]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"properties": {"a": {"not": {"type": "string"}}}}, "`not` cannot be checked"),
        ({"properties": {"a": {"type": ["string", "integer"], "minimum": 1}}}, "`minimum` cannot be checked"),
        ({"properties": {"a": {"properties": {"b": True}, "minProperties": 1}}}, "`minProperties` cannot be checked"),
    ],
)
def test_a_rule_that_cannot_be_checked_is_refused(
    spark: SparkSession, tmp_path: Path, document: object, message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        decoded(spark, [], json_schema_file(tmp_path, document), value="json-schema")


def test_formats_with_columns_need_a_schema(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="`value: json` needs a `schema`"):
        decoded(spark, [], None, value="json")
    with pytest.raises(PipelineError, match="needs a JSON Schema"):
        decoded(spark, [], "id bigint", value="json-schema")


ROW = (
    "SELECT 1L AS id, 'é,\"x' AS name, timestamp'2026-01-31 12:00:00.123456Z' AS at, CAST(NULL AS INT) AS nothing, "
    "1.50BD AS price, date'2026-01-31' AS day, TRUE AS yes"
)
COLUMNS = "id bigint, name string, at timestamp, nothing int, price decimal(3,2), day date, yes boolean"


@pytest.mark.parametrize("kind", ["json", "csv", "avro"])
def test_what_was_encoded_decodes_to_the_same(spark: SparkSession, kind: Literal["json", "csv", "avro"]) -> None:
    rows = spark.sql(ROW)
    encoded = encode(rows, TopicSink(topic="out", value=kind))
    raw = encoded.selectExpr(
        "*",
        "'out' AS topic",
        "0 AS partition",
        "0L AS offset",
        "current_timestamp() AS timestamp",
        "0 AS timestampType",
    )
    (back,) = decode(raw, TopicSource(topic="out", value=kind, schema=COLUMNS), given(COLUMNS)).collect()
    assert back["_error"] is None
    (row,) = rows.collect()
    assert {name: back[name] for name in rows.columns} == row.asDict()


def test_json_keeps_nulls_and_microseconds(spark: SparkSession) -> None:
    (row,) = encode(spark.sql(ROW).select("id", "nothing", "at"), TopicSink(topic="out")).collect()
    assert json.loads(row["value"]) == {"id": 1, "nothing": None, "at": "2026-01-31T12:00:00.123456Z"}
    sink = TopicSink(topic="out", options={"value.ignoreNullFields": "true"})
    (row,) = encode(spark.sql(ROW).select("id", "nothing"), sink).collect()
    assert row["value"] == b'{"id":1}'


def test_key_and_headers_are_expressions(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 7 AS id, 'x' AS name, X'00FF' AS bytes, CAST(NULL AS STRING) AS nothing")
    headers = {"n": "id + 1", "b": "bytes", "none": "nothing", "s": "struct(id)"}
    (row,) = encode(rows, TopicSink(topic="out", key="concat(name, id)", headers=headers)).collect()
    assert row["key"] == b"x7"
    assert {header["key"]: header["value"] for header in row["headers"]} == {
        "n": b"8", "b": b"\x00\xff", "none": None, "s": b'{"id":7}',
    }  # fmt: skip
    (plain,) = encode(rows, TopicSink(topic="out")).collect()
    assert (plain["key"], plain["headers"]) == (None, None)
    with pytest.raises(PipelineError, match=r"key: .*nowhere"):
        encode(rows, TopicSink(topic="out", key="nowhere"))


def test_text_and_raw_take_the_column_value_or_the_only_one(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 'a' AS value, 1 AS n, X'00' AS bytes")
    assert encode(rows, TopicSink(topic="out", value="text")).collect()[0]["value"] == b"a"
    assert encode(rows.select("n"), TopicSink(topic="out", value="text")).collect()[0]["value"] == b"1"
    assert encode(rows.select("bytes"), TopicSink(topic="out", value="raw")).collect()[0]["value"] == b"\0"
    with pytest.raises(PipelineError, match="n is int"):
        encode(rows.select("n"), TopicSink(topic="out", value="raw"))
    with pytest.raises(PipelineError, match="or the only one; there are n, bytes"):
        encode(rows.select("n", "bytes"), TopicSink(topic="out", value="text"))


def test_hidden_columns_are_not_written(spark: SparkSession) -> None:
    rows = decode(records(spark, ['{"id": 1}']), TopicSource(topic="t"), given("id bigint"))
    assert encode(rows, TopicSink(topic="out")).collect()[0]["value"] == b'{"id":1}'


def test_avro_with_a_given_schema(spark: SparkSession, avsc: str) -> None:
    rows = spark.sql("SELECT 1L AS id, 'x' AS name, struct('Paris' AS city) AS home")
    sink = TopicSink(topic="out", value="avro", schema=avsc)
    assert encode(rows, sink).collect()[0]["value"] == GOOD_AVRO
    for columns, message in [
        ("id, name", "a field home"), ("*, 1 AS more", "no field for the column more"),
        ("'x' AS id, name, home", "do not fit"),
    ]:  # fmt: skip
        with pytest.raises(PipelineError, match=message):
            encode(rows.selectExpr(*columns.split(", ")), sink)


def test_rows_that_an_avro_schema_cannot_hold_are_told_beforehand(spark: SparkSession, avsc: str) -> None:
    home = "struct<city: string>"
    rows = spark.createDataFrame(
        [(1, None, ("Paris",)), (None, "x", ("Paris",)), (1, "x", None), (1, "x", (None,))],
        f"id bigint, name string, home {home}",
    )
    found = refusal(rows, TopicSink(topic="out", value="avro", schema=avsc))
    assert found is not None
    messages = [row[0] and row[0].split(",")[0] for row in rows.select(found["message"]).collect()]
    assert messages == [None, "id is null", "home is null", "home.city is null"]
    assert refusal(rows, TopicSink(topic="out", value="avro")) is None
    assert refusal(rows, TopicSink(topic="out")) is None


def test_columns_that_a_format_cannot_hold(spark: SparkSession) -> None:
    rows = spark.sql("SELECT array(1) AS list, make_interval(1) AS span, 1 AS `a b`")
    with pytest.raises(PipelineError, match="CSV cannot hold the column list"):
        encode(rows.select("list"), TopicSink(topic="out", value="csv"))
    with pytest.raises(PipelineError, match="the column span, which is interval"):
        encode(rows.select("span"), TopicSink(topic="out", value="avro"))
    with pytest.raises(PipelineError, match="cannot have a field 'a b'"):
        encode(rows.select("a b"), TopicSink(topic="out", value="avro"))
    assert encode(rows.select("a b"), TopicSink(topic="out")).collect()[0]["value"] == b'{"a b":1}'


def test_dates_of_a_json_schema_are_dates(spark: SparkSession, tmp_path: Path) -> None:
    document = {"properties": {"day": {"type": "string", "format": "date"}, "any": {}}}
    (row,) = decoded(spark, ['{"day": "2026-01-31", "any": [1]}'], json_schema_file(tmp_path, document))
    assert (row["day"], row["any"]) == (date(2026, 1, 31), "[1]")

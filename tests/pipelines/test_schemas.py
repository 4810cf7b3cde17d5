"""Schemas as users give them, and what is inferred once and kept."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from millstream.pipelines.description.element import Place
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.schemas import given, inferred
from millstream.pipelines.spark.schemas.inferred import columns_of_texts


def written(folder: Path, name: str, content: object) -> str:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


def test_ddl_and_files_of_ddl(spark: SparkSession, tmp_path: Path) -> None:
    expected = "struct<id:bigint,name:string>"
    assert given("id bigint, name string").columns.simpleString() == expected
    file = written(tmp_path, "s.ddl", "id bigint,\n  name string\n")
    assert given(file).columns.simpleString() == expected


def test_avro_files(spark: SparkSession, tmp_path: Path) -> None:
    record = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "long"}]}
    schema = given(written(tmp_path, "a.avsc", record))
    assert schema.columns.simpleString() == "struct<id:bigint>"
    assert schema.avro is not None
    assert json.loads(schema.avro) == record


def test_json_files_are_json_schemas_or_spark_types(spark: SparkSession, tmp_path: Path) -> None:
    document = {
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "code": {"type": "string", "format": "date-time", "pattern": "x"},
            "where": {"$ref": "#/$defs/point"},
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "blob": {"type": "string", "contentEncoding": "base64"},
            "size": {"enum": [1, 2, None]},
        },
    }
    schema = given(written(tmp_path, "s.json", document))
    assert schema.document == document
    assert schema.columns.simpleString() == (
        "struct<id:bigint,at:timestamp,code:string,where:struct<x:double>,points:array<struct<x:double>>,"
        "labels:map<string,boolean>,blob:binary,size:bigint>"
    )
    own = StructType().add("id", "long")
    schema = given(written(tmp_path, "own.json", own.jsonValue()))
    assert (schema.columns, schema.document) == (own, None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("", "id bigintt", "is not a schema: write columns"),
        ("", "bigint", "a type without a column"),
        ("", "_origin string", "_origin cannot be a column"),
        ("", "a int, A string", "a column twice: A, a"),
        ("gone.ddl", None, "cannot be read: No such file"),
        ("s.json", "{", "is not JSON"),
        ("s.json", [1], "neither a JSON Schema nor"),
        ("s.json", {"type": "string"}, "a row needs columns"),
        ("s.json", {"properties": {"a": {"type": "text"}}}, r"\$\.a: `type: text`"),
        ("s.json", {"properties": {"a": {"$ref": "#/$defs/b"}}}, "leads nowhere"),
        ("s.json", {"properties": {"a": {"$ref": "http://x/y"}}}, "leads out of the file"),
        (
            "s.json",
            {"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
            "contains itself",
        ),
        ("s.json", {"type": "struct", "fields": [{"name": "a"}]}, "not the JSON of a Spark type"),
        ("s.avsc", {"type": "record", "name": "A"}, "is not an Avro schema"),
    ],
)
def test_mistakes_are_told_with_their_place(
    spark: SparkSession, tmp_path: Path, name: str, content: object, message: str
) -> None:
    schema = str(tmp_path / name) if name else str(content)
    if name and content is not None:
        written(tmp_path, name, content)
    place = Place("p.yaml", 3, "source.schema")
    with pytest.raises(PipelineError, match=message) as caught:
        given(schema, place)
    assert str(caught.value).startswith("p.yaml:3: source.schema: ")


def test_a_schema_is_inferred_once_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    found = StructType().add("id", "long")
    assert inferred(tmp_path / "run", "clicks", lambda: found).columns == found

    def again() -> StructType:
        raise AssertionError("it was kept")

    assert inferred(tmp_path / "run", "clicks", again).columns == found
    kept = tmp_path / "run" / "schema-clicks.json"
    kept.write_text(json.dumps(StructType().add("id", "double").jsonValue()))
    assert inferred(tmp_path / "run", "clicks", again).columns.simpleString() == "struct<id:double>"


def test_nothing_to_infer_from_asks_for_a_schema_and_keeps_nothing(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="clicks: nothing was found to infer a schema from: give `schema`"):
        inferred(tmp_path, "clicks", StructType)
    assert list(tmp_path.iterdir()) == []


def test_the_columns_of_a_sample(spark: SparkSession) -> None:
    documents = spark.createDataFrame([('{"id": 1}',), ('{"id": 2.5, "name": "x"}',), ("{",)], "value string")
    assert columns_of_texts(spark, documents, "json", {}, None).simpleString() == "struct<id:double,name:string>"
    lines = spark.createDataFrame([("1,x",), ("2,y",)], "value string")
    assert columns_of_texts(spark, lines, "csv", {}, None).simpleString() == "struct<_c0:int,_c1:string>"
    with pytest.raises(PipelineError, match="none of the values looked at is a JSON object"):
        columns_of_texts(spark, spark.createDataFrame([("{",)], "value string"), "json", {}, None)
    assert columns_of_texts(spark, documents.limit(0), "json", {}, None).names == []

"""From a record's bytes to columns.

| format | columns | what is an error |
|---|---|---|
| text | `value`, a string | bytes that are not UTF-8 |
| raw | `value`, binary | |
| json | the schema's | no JSON, more than one document, no object, a value that is not of its column's type |
| json-schema | the schema's | the same, and what the schema forbids |
| csv | the schema's | too few or too many values, a value that is not of its column's type |
| avro | the schema's | bytes that the schema cannot read |

A record without a value (a tombstone) is an error where columns are expected, unless `value.tombstones: skip` is set;
as text and raw it is a null.

JSON is wrapped into `{"value": ..., "end": true}` before it is parsed. Spark takes an array for its first object,
ignores what follows the first document and has no error for an empty value; inside an object each is malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from millstream.pipelines.description.sources import Table, TopicSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import ERROR, ERROR_TYPE, ORIGIN, ORIGIN_TYPE, error
from millstream.pipelines.spark.schemas import Schema, avro, json_schema
from millstream.pipelines.spark.values.options import is_set, value_options

STAGE = "source"
CORRUPT = "_millstream_corrupt"
"""Where Spark shows what it could not read; no column of a user is called so."""
PARSED = "_parsed"
LONGEST_VALUE = 64 * 1024 * 1024
JAVA_OPTIONS = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={LONGEST_VALUE}" for what in ("bytes", "string", "collectionItems")
)
"""For the JVMs of the driver and the executors. Avro allocates what a length in a record claims, up to 2 GB, before it
reads on: without a limit one malformed record ends the JVM."""
_EXPLAINED = 100
"""With more columns than this a message does not say which of them is wrong."""


class Decoding(NamedTuple):
    """What one format makes of a value: the parsed value as one column, where its columns are in it, and the error."""

    parsed: Column
    columns: Callable[[Column], list[Column]]
    error: Callable[[Column], Column]


def decode(rows: DataFrame, source: TopicSource | Table, schema: Schema | None) -> DataFrame:
    """Records as Spark's Kafka source gives them -> the user's columns, `_origin` and `_error`. Text and raw need no
    schema."""
    options = value_options(source.options)
    decoding = decoding_of(source, schema, options)
    if source.value not in ("text", "raw") and options.get("tombstones") == "skip":
        rows = rows.where(F.col("value").isNotNull())
    parsed = rows.withColumn(PARSED, decoding.parsed)
    columns = decoding.columns(F.col(PARSED))
    try:
        problem = decoding.error(F.col(PARSED))
    except json_schema.SchemaMistake as mistake:
        raise PipelineError(f"{source.schema_} cannot be used: {mistake}", source.place) from mistake
    return parsed.select(*_key(source, schema), *columns, origin(rows), problem.alias(ERROR))


def decoding_of(source: TopicSource | Table, schema: Schema | None, options: Mapping[str, str]) -> Decoding:
    """How the value of a record is decoded."""
    if source.value == "raw":
        return Decoding(F.col("value"), lambda parsed: [parsed.alias("value")], lambda _: F.lit(None).cast(ERROR_TYPE))
    if source.value == "text":
        return text()
    if schema is None:
        raise PipelineError(f"`value: {source.value}` needs a `schema`", source.place)
    if source.value == "csv":
        return csv(schema.columns, options)
    if source.value == "avro":
        return _avro(schema, options)
    checked = schema.document if source.value == "json-schema" else None
    if source.value == "json-schema" and checked is None:
        raise PipelineError("`value: json-schema` needs a JSON Schema: `schema: FILE.json`", source.place)
    return json(schema.columns, options, checked)


def origin(rows: DataFrame) -> Column:
    """The record as it was read."""
    headers = F.col("headers") if "headers" in rows.columns else F.lit(None)
    names = ("topic", "partition", "offset", "timestamp", "key", "value")
    return F.struct(*map(F.col, names), headers.alias("headers")).cast(ORIGIN_TYPE).alias(ORIGIN)


def _key(source: TopicSource | Table, schema: Schema | None) -> list[Column]:
    kind = "text" if isinstance(source, Table) else source.key
    if kind == "none":
        return []
    if schema is not None and "key" in map(str.lower, schema.columns.names):
        raise PipelineError("the values have a column `key` already, so the record's key cannot be one", source.place)
    return [F.col("key").cast("string").alias("key") if kind == "text" else F.col("key")]


def json(columns: StructType, options: Mapping[str, str], document: json_schema.Document | None = None) -> Decoding:
    """JSON objects in the column `value` (binary or text)."""
    text = F.col("value").cast("string")
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_json(_wrapped(_once(text)), _wrapper(columns), settings)

    def problem(found: Column) -> Column:
        bad = found["value"].isNull() | found["end"].isNull() | found[CORRUPT].isNotNull()
        result = _no_text(text).when(bad, _json_problem(text, columns, settings))
        if document is None:
            return result
        messages = json_schema.violations(document, found["value"], text)
        broken = F.nullif(F.concat_ws("; ", *messages), F.lit(""))
        return result.when(broken.isNotNull(), error(STAGE, "against-schema", broken)) if messages else result

    return Decoding(parsed, _fields(columns), problem)


def csv(columns: StructType, options: Mapping[str, str]) -> Decoding:
    """One line of values in the column `value` (binary or text)."""
    text = F.col("value").cast("string")
    line = F.regexp_replace(_once(text), "[\r\n]+$", "")
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_csv(line, StructType([*columns.fields, StructField(CORRUPT, StringType())]).toDDL(), settings)

    def problem(found: Column) -> Column:
        message = F.lit(f"the value is not a CSV line of {len(columns.names)} values of their columns' types")
        bad = (F.trim(text) == "") | found[CORRUPT].isNotNull()
        return _no_text(text).when(bad, error(STAGE, "not-csv", message))

    return Decoding(parsed, lambda found: [found[name].alias(name) for name in columns.names], problem)


def text() -> Decoding:
    text = F.col("value").cast("string")

    def problem(found: Column) -> Column:
        message = F.lit("the value is not text in UTF-8 (`value: raw` takes any bytes)")
        return F.when(~F.is_valid_utf8(found), error(STAGE, "not-utf8", message))

    return Decoding(text, lambda found: [found.alias("value")], problem)


def _avro(schema: Schema, options: Mapping[str, str]) -> Decoding:
    written = schema.avro or avro.derived(schema.columns, "value")
    framed = is_set(options, "confluent")
    value = F.col("value")
    # Confluent's framing: a zero byte and the schema's id in the registry in four bytes.
    body = F.substring(_once(value), 6, LONGEST_VALUE) if framed else _once(value)
    settings = {name: text for name, text in options.items() if name not in ("confluent", "tombstones")}
    parsed = from_avro(body, avro.wrapped(written), {**settings, "mode": "PERMISSIVE"})

    def problem(found: Column) -> Column:
        result = F.when(value.isNull(), error(STAGE, "no-value", F.lit("the record has no value")))
        if framed:
            message = F.lit("the value does not begin with Confluent's five bytes")
            unframed = (F.octet_length(value) < 5) | (F.substring(value, 1, 1) != F.lit(b"\0"))
            result = result.when(unframed, error(STAGE, "not-framed", message))
        message = F.lit("the value cannot be read with the Avro schema")
        return result.when(found[avro.WRAPPED].isNull(), error(STAGE, "not-avro", message))

    if avro.is_record(written):
        return Decoding(parsed, _fields(schema.columns), problem)
    return Decoding(parsed, lambda found: [found[avro.WRAPPED].alias("value")], problem)


def _once(column: Column) -> Column:
    """The same column, but one that Spark does not copy.

    A filter on a parsed column would be pushed below the parsing with a copy of it, and each value be parsed again for
    each such filter. What is not deterministic stays where it is.
    """
    return F.when(F.spark_partition_id() >= 0, column)


def _wrapped(text: Column) -> Column:
    return F.concat(F.lit('{"value":'), text, F.lit(',"end":true}'))


def _wrapper(kind: StructType | StringType) -> StructType:
    return StructType(
        [StructField("value", kind), StructField("end", BooleanType()), StructField(CORRUPT, StringType())]
    )


def _fields(columns: StructType) -> Callable[[Column], list[Column]]:
    return lambda found: [found["value"][name].alias(name) for name in columns.names]


def _no_text(text: Column) -> Column:
    missing = error(STAGE, "no-value", F.lit("the record has no value"))
    garbled = error(STAGE, "not-utf8", F.lit("the value is not text in UTF-8"))
    return F.when(text.isNull(), missing).when(~F.is_valid_utf8(text), garbled)


def _json_problem(text: Column, columns: StructType, settings: Mapping[str, str]) -> Column:
    """What is wrong with a value that did not parse; only computed for such."""
    plain = F.from_json(_wrapped(text), _wrapper(StringType()), settings)
    no_json = plain["end"].isNull() | plain[CORRUPT].isNotNull()
    no_object = plain["value"].isNull() | ~F.startswith(F.ltrim(text), F.lit("{"))
    return (
        F.when(no_json, error(STAGE, "not-json", F.lit("the value is not one JSON document")))
        .when(no_object, error(STAGE, "not-an-object", F.lit("the value is JSON, but not an object")))
        .otherwise(error(STAGE, "wrong-type", _wrong_fields(text, columns, settings)))
    )


def _wrong_fields(text: Column, columns: StructType, settings: Mapping[str, str]) -> Column:
    """Which columns do not have the type that was found in the document."""
    if len(columns.fields) > _EXPLAINED:
        return F.lit("a value in the document is not of its column's type")
    messages = []
    for field in columns.fields:
        alone = F.from_json(text, StructType([field, StructField(CORRUPT, StringType())]), settings)
        shown = F.left(F.get_json_object(text, f"$['{field.name}']"), F.lit(100))
        message = F.concat(F.lit(f"{field.name} is "), shown, F.lit(f", which is not {field.dataType.simpleString()}"))
        messages.append(F.when(alone[CORRUPT].isNotNull(), message))
    return F.concat_ws("; ", *messages)

"""From columns to a record: `key`, `value` and `headers`, all as bytes.

JSON and CSV keep what the columns hold: nulls are written (Spark would leave them out) and times have microseconds
(Spark would cut them to milliseconds). Options that begin with `value.` change that.
"""

from __future__ import annotations

import json

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from millstream.pipelines.description.sinks import TopicSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.rows import error, visible, visible_schema
from millstream.pipelines.spark.schemas import avro, given
from millstream.pipelines.spark.values.options import value_options

_LOSSLESS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_HEADERS = "array<struct<key: string, value: binary>>"


def encode(rows: DataFrame, sink: TopicSink) -> DataFrame:
    """The visible columns of each row as one record; PipelineError if the format cannot hold them."""
    return rows.select(*record_columns(rows, sink))


def record_columns(rows: DataFrame, sink: TopicSink) -> list[Column]:
    """`key`, `value` and `headers` of the record that a row becomes."""
    if not visible(rows):
        raise PipelineError("there is no column to write", sink.place)
    headers = [
        F.struct(F.lit(name).alias("key"), _bytes(rows, text, f"headers.{name}", sink).alias("value"))
        for name, text in sink.headers.items()
    ]
    return [
        (F.lit(None).cast("binary") if sink.key is None else _bytes(rows, sink.key, "key", sink)).alias("key"),
        _value(rows, sink).alias("value"),
        (F.array(*headers) if headers else F.lit(None)).cast(_HEADERS).alias("headers"),
    ]


def refusal(rows: DataFrame, sink: TopicSink) -> Column | None:
    """The error of a row that the format cannot hold, null for others; None if it can hold every row."""
    if sink.value != "avro" or sink.schema_ is None:
        return None
    columns = visible_schema(rows)
    row = {name: F.col(_quoted(name)) for name in columns.names}
    found: Column | None = None
    for path, missing in avro.missing_values(_avro_schema(rows, sink), columns, row):
        problem = error(
            "sink", "no-value", F.lit(f"{path} is null, and the Avro schema of {sink.topic} does not allow it")
        )
        found = F.when(missing, problem) if found is None else found.when(missing, problem)
    return found


def _value(rows: DataFrame, sink: TopicSink) -> Column:
    columns = visible_schema(rows)
    row = F.struct(*(F.col(_quoted(name)) for name in columns.names))
    options = {**_LOSSLESS, **value_options(sink.options)}
    match sink.value:
        case "json":
            return F.to_json(row, options).cast("binary")
        case "csv":
            nested = [
                field.name for field in columns.fields if isinstance(field.dataType, ArrayType | MapType | StructType)
            ]
            if nested:
                raise PipelineError(f"CSV cannot hold the column {nested[0]}: it has parts", sink.place)
            return F.to_csv(row, options).cast("binary")
        case "avro":
            return to_avro(row, _avro_schema(rows, sink))
    name = "value" if "value" in columns.names else columns.names[0]
    if name != "value" and len(columns.names) > 1:
        raise PipelineError(
            f"`value: {sink.value}` writes the column `value`, or the only one; there are {', '.join(columns.names)}",
            sink.place,
        )
    kind = columns[name].dataType
    if sink.value == "raw" and not isinstance(kind, BinaryType | StringType):
        raise PipelineError(f"`value: raw` writes bytes, and {name} is {kind.simpleString()}", sink.place)
    return _as_bytes(F.col(_quoted(name)), kind)


def _avro_schema(rows: DataFrame, sink: TopicSink) -> str:
    """The schema to write with. A given one must have a field for each column, and there must be a column for each."""
    columns = visible_schema(rows)
    if sink.schema_ is None:
        try:
            return avro.derived(columns, sink.topic)
        except TypeError as mistake:
            raise PipelineError(f"`value: avro`: {mistake}", sink.place) from mistake
    schema = given(sink.schema_, sink.place)
    if schema.avro is None or not avro.is_record(schema.avro):
        raise PipelineError(f"{sink.schema_}: `value: avro` needs the Avro schema of a record (.avsc)", sink.place)
    fields = {field["name"]: field for field in json.loads(schema.avro)["fields"]}
    unknown = [name for name in columns.names if name not in fields]
    if unknown:
        raise PipelineError(f"{sink.schema_} has no field for the column {unknown[0]}", sink.place)
    missing = [name for name in fields if name not in columns.names]
    if missing:
        raise PipelineError(f"{sink.schema_} has a field {missing[0]}, and there is no such column", sink.place)
    problem = avro.misfit(columns, schema.avro)
    if problem is not None:
        raise PipelineError(f"the columns do not fit {sink.schema_}: {problem}", sink.place)
    return schema.avro


def _bytes(rows: DataFrame, expression: str, field: str, sink: TopicSink) -> Column:
    """A SQL expression of the row as bytes."""
    try:
        (kind,) = rows.select(F.expr(expression)).schema.fields
    except AnalysisException as mistake:
        raise PipelineError(f"{field}: {_first_line(mistake)}", sink.place) from mistake
    return _as_bytes(F.expr(expression), kind.dataType)


def _as_bytes(column: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return column
    if isinstance(kind, ArrayType | MapType | StructType):
        return F.to_json(column, _LOSSLESS).cast("binary")
    return column.cast("string").cast("binary")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _first_line(mistake: Exception) -> str:
    return str(mistake).strip().splitlines()[0]

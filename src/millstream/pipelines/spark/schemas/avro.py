"""Avro schemas: read from a file, derived from columns, and what a row must have to fit one.

A derived schema gives every column as a union with null, since any column of a stream may be null, and Spark's types as
Avro's logical types. Columns are written by their names, so a given schema must have a field for each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_PLAIN: dict[type[DataType], Any] = {
    BinaryType: "bytes",
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
WRAPPED = "value"
"""The only field of `wrapped`."""


def derived(columns: StructType, name: str) -> str:
    """The schema for rows of these columns; TypeError names a column whose type Avro does not have."""
    return json.dumps(_record(columns, _name(name)))


def wrapped(schema: str) -> str:
    """A record with the given schema as its only field. It has the same bytes as that field.

    Spark gives a record that it cannot read as a row of nulls. Inside another record it is a null, which no good one
    is.
    """
    return json.dumps({"type": "record", "name": "Wrapped", "fields": [{"name": WRAPPED, "type": json.loads(schema)}]})


def columns_of(schema: str) -> StructType:
    """The columns that Spark makes of a schema, or Spark's exception. What is not a record is the column `value`."""
    spark = SparkSession.active()
    read = from_avro(F.lit(b""), wrapped(schema), {"mode": "PERMISSIVE"})
    kind = spark.range(0).select(read.alias(WRAPPED)).schema[WRAPPED].dataType
    assert isinstance(kind, StructType)
    inner = kind[WRAPPED].dataType
    return inner if isinstance(inner, StructType) else StructType().add(WRAPPED, inner)


def is_record(schema: str) -> bool:
    document = json.loads(schema)
    return isinstance(document, dict) and document.get("type") == "record"


def misfit(columns: StructType, schema: str) -> str | None:
    """Why rows of these columns cannot be written with the schema; None if they can.

    Spark itself would find out with the first row, so its serializer is made here once for nothing.
    """
    jvm = SparkSession.active()._jvm
    assert jvm is not None
    try:
        jvm.org.apache.spark.sql.avro.AvroSerializer(
            jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json()),
            jvm.org.apache.avro.Schema.Parser().parse(schema),
            False,
        )
    except Exception as error:  # Spark's, through Py4J
        return reason(error)
    return None


def reason(error: Exception) -> str:
    """What the innermost Java exception said, in one line."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error if cause is None else cause.getMessage()).strip()
    return text.splitlines()[0] if text else type(error).__name__


def missing_values(schema: str, columns: StructType, row: dict[str, Column]) -> Iterator[tuple[str, Column]]:
    """Field -> whether the row has no value where the schema wants one. Items of arrays and maps are not looked at."""
    yield from _missing(json.loads(schema), columns, row, "")


def _missing(node: Any, columns: StructType, row: dict[str, Column], prefix: str) -> Iterator[tuple[str, Column]]:
    for field in node["fields"]:
        name, kind = field["name"], field["type"]
        if name not in row:
            continue
        if not isinstance(kind, list) and kind != "null":
            yield f"{prefix}{name}", row[name].isNull()
        record = next(
            (part for part in _choices(kind) if isinstance(part, dict) and part.get("type") == "record"), None
        )
        inner = columns[name].dataType
        if record is not None and isinstance(inner, StructType):
            parts = {part: row[name][part] for part in inner.names}
            for path, missing in _missing(record, inner, parts, f"{prefix}{name}."):
                yield path, row[name].isNotNull() & missing


def _choices(kind: Any) -> list[Any]:
    return kind if isinstance(kind, list) else [kind]


def _record(columns: StructType, name: str) -> dict[str, Any]:
    for column in columns.names:
        if _name(column) != column:
            raise TypeError(f"Avro cannot have a field {column!r}: only letters, digits and `_`, and no digit first")
    fields = [
        {"name": column.name, "type": ["null", _type(column.dataType, column.name, name)], "default": None}
        for column in columns.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _type(kind: DataType, column: str, prefix: str) -> Any:
    match kind:
        case DecimalType():
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        case StructType():
            return _record(kind, f"{prefix}_{_name(column)}")
        case ArrayType():
            return {"type": "array", "items": ["null", _type(kind.elementType, column, prefix)]}
        case MapType() if isinstance(kind.keyType, StringType):
            return {"type": "map", "values": ["null", _type(kind.valueType, column, prefix)]}
    try:
        return _PLAIN[type(kind)]
    except KeyError:
        raise TypeError(f"Avro has nothing for the column {column}, which is {kind.simpleString()}: cast it") from None


def _name(text: str) -> str:
    """A name as Avro allows it: letters, digits and `_`, not a digit first."""
    name = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in text)
    return name if name and not name[0].isdigit() else f"_{name}"

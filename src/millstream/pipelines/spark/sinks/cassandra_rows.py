"""Rows and CQL: which type a column gets, and how a value is turned into what the driver takes and back.

Arrays and maps become collections, whatever holds a struct becomes JSON text. A timestamp has milliseconds in
Cassandra.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from millstream.pipelines.spark.sinks.refusals import quoted

TYPES = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "decimal": "decimal",
    "string": "text",
    "binary": "blob",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
}
"""Spark's name of a type -> CQL's."""

_WHOLE = ("tinyint", "smallint", "int", "bigint", "varint")
_ACCEPTED: dict[str, tuple[str, ...]] = {
    **{name: (cql,) for name, cql in TYPES.items()},
    **dict.fromkeys(("byte", "short", "integer", "long"), _WHOLE),
    **dict.fromkeys(("float", "double"), ("float", "double")),
    "string": ("text", "varchar", "ascii", "uuid", "timeuuid", "inet"),
    "array": ("list", "set"),
    "map": ("map",),
}
"""Spark's name of a type -> the types of an existing column that can take it."""


def stored_type(kind: DataType) -> DataType:
    """The type of the column as it is sent: text for what has no place of its own."""
    if _has_struct(kind):
        return StringType()
    return kind if kind.typeName() in _ACCEPTED else StringType()


def sent(field: StructField) -> Column:
    """The value as it is sent to the workers."""
    column = F.col(quoted(field.name))
    if _has_struct(field.dataType):
        return F.to_json(column)
    return column if isinstance(stored_type(field.dataType), type(field.dataType)) else column.cast("string")


def cql_type(kind: DataType, *, frozen: bool = False) -> str:
    """The type of a column that is made for it; a collection in a key or in another one is frozen."""
    kind = stored_type(kind)
    if isinstance(kind, ArrayType):
        text = f"list<{cql_type(kind.elementType, frozen=True)}>"
    elif isinstance(kind, MapType):
        text = f"map<{cql_type(kind.keyType, frozen=True)}, {cql_type(kind.valueType, frozen=True)}>"
    else:
        return TYPES[kind.typeName()]
    return f"frozen<{text}>" if frozen else text


def accepts(cql: str, kind: DataType) -> bool:
    """Whether a column of this CQL type can take values of the Spark type."""
    return base_type(cql) in _ACCEPTED[stored_type(kind).typeName()]


def base_type(cql: str) -> str:
    """`list` of `frozen<list<int>>`."""
    return cql.removeprefix("frozen<").partition("<")[0].rstrip(">")


def to_cassandra(kind: DataType, cql: str) -> Callable[[Any], Any] | None:
    """From what Arrow gives to what the driver takes; None if that is the same."""
    if base_type(cql) in ("uuid", "timeuuid"):
        return uuid.UUID
    if isinstance(kind, MapType):
        key, value = to_cassandra(kind.keyType, ""), to_cassandra(kind.valueType, "")
        return lambda pairs: {_done(key, k): _done(value, v) for k, v in pairs}
    if isinstance(kind, ArrayType):
        element = to_cassandra(kind.elementType, "")
        if base_type(cql) == "set":
            return lambda items: {_done(element, item) for item in items}
        return None if element is None else lambda items: [_done(element, item) for item in items]
    return None


def from_cassandra(kind: DataType) -> Callable[[Any], Any]:
    """From what the driver gives to what Arrow takes for the type."""
    kind = stored_type(kind)
    if isinstance(kind, ArrayType):
        element = from_cassandra(kind.elementType)
        return lambda items: [_done(element, item) for item in items]
    if isinstance(kind, MapType):
        key, value = from_cassandra(kind.keyType), from_cassandra(kind.valueType)
        return lambda entries: [(_done(key, k), _done(value, v)) for k, v in entries.items()]
    if isinstance(kind, StringType):
        return str
    if kind.typeName() == "date":
        return lambda found: found.date()
    if kind.typeName() == "timestamp":
        return lambda found: found.replace(tzinfo=UTC) if isinstance(found, datetime) else found
    return lambda found: found


def _done(convert: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _has_struct(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_struct(kind.elementType)
    if isinstance(kind, MapType):
        return _has_struct(kind.keyType) or _has_struct(kind.valueType)
    return isinstance(kind, StructType | VariantType)

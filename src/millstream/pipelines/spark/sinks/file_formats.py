"""The formats of files: with which options rows come back as they went, and which types a format has not.

Spark's defaults are made for other things: it drops blanks at the ends of texts in CSV, escapes quotes in a way that
few other readers know, takes the end of a line in a text for the end of the row, and writes times without microseconds
in CSV and JSON. The user's own options come last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, VariantType

from millstream.pipelines.description.sinks import FileOutput

_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "json": _TIMES,
    "csv": {
        **_TIMES,
        "escape": '"',
        "multiLine": "true",
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    },
}
_LACKING: Mapping[str, tuple[type[DataType], ...]] = {
    "csv": (ArrayType, BinaryType, MapType, StructType, VariantType),
}
_AVRO_SMALL = re.compile(r'"(type|elementType|valueType)":"(?:byte|short)"')


def file_options(sink: FileOutput) -> dict[str, str]:
    """The options of Spark's writer, and of its reader."""
    given = {name.lower() for name in sink.options}
    defaults = {name: value for name, value in _DEFAULTS.get(sink.format, {}).items() if name.lower() not in given}
    return {**defaults, **{name: str(value) for name, value in sink.options.items()}}


def file_schema(sink: FileOutput, schema: StructType) -> StructType:
    """The columns as files of this format have them; their order and names are the same."""
    if sink.format != "avro":
        return schema
    # It has no smaller integers.
    return StructType.fromJson(json.loads(_AVRO_SMALL.sub(r'"\1":"integer"', schema.json())))


def misfit(sink: FileOutput, schema: StructType) -> str | None:
    """What of the rows does not go into such files."""
    absent = [name for name in sink.partition_by if name not in schema.names]
    if absent:
        return f"partition_by: the rows have no column {', '.join(absent)}; they have {', '.join(schema.names)}"
    if len(set(sink.partition_by)) == len(schema.names):
        return "partition_by: all columns become folders, so that the files would have none; leave one out"
    for field in schema.fields:
        if isinstance(field.dataType, _LACKING.get(sink.format, ())) and field.name not in sink.partition_by:
            kind = field.dataType.simpleString()
            return (
                f"{sink.format} has no type for column {field.name} ({kind}); parquet has, or leave it out by `select`"
            )
    return None

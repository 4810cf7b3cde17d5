"""What a database sink's table holds now, as a DataFrame with the types of the rows that were written."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, TimestampType

from millstream.pipelines.description.database import parse_database
from millstream.pipelines.description.sinks import DatabaseSink
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks.dialects import DIALECTS, connection_options
from millstream.pipelines.spark.sinks.jdbc import Jdbc
from millstream.pipelines.spark.sinks.staging import AS_JSON, staged_type
from millstream.pipelines.spark.sinks.table_facts import describe


def read_database(sink: DatabaseSink, context: Context, schema: StructType) -> DataFrame | None:
    """The columns of `schema`, or None if there is no such table. Times are read as text, as they were written."""
    database = parse_database(sink.database)
    dialect, options = DIALECTS[database.kind], connection_options(database)
    jdbc = Jdbc(context.spark, options)
    try:
        facts = describe(jdbc, dialect, sink.table)
    finally:
        jdbc.close()
    if facts is None:
        return None
    columns = []
    for i, field in enumerate(schema.fields):
        column = facts.columns[field.name.lower()]
        read = dialect.read_as_text.get(column.type.upper(), "{column}")
        columns.append(f"{read.format(column=dialect.quote(column.name))} AS c{i}")
    options["query"] = f"SELECT {', '.join(columns)} FROM {dialect.quote_table(sink.table)}"
    if dialect.read_session:
        options["sessionInitStatement"] = dialect.read_session
    if database.kind == "sqlite":  # it has a type for each value, none for the column
        types = [staged_type(field.dataType).simpleString() for field in schema.fields]
        options["customSchema"] = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    found = context.spark.read.format("jdbc").options(**options).load()
    return found.select(*[_value(i, field).alias(field.name) for i, field in enumerate(schema.fields)])


def _value(position: int, field: StructField) -> Column:
    column = F.col(f"c{position}")
    if isinstance(field.dataType, AS_JSON):
        return F.from_json(column.cast("string"), field.dataType.simpleString())
    if isinstance(field.dataType, TimestampType):
        without_zone = F.regexp_replace(column.cast("string"), "(Z|\\+00)$", "")
        return F.to_timestamp(F.concat(without_zone, F.lit("Z")))
    return column.cast(field.dataType)

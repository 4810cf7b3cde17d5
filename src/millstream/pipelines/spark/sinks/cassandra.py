"""The door to the Cassandra sink: its driver is an extra, and is loaded only where a pipeline has such a sink."""

from __future__ import annotations

from types import ModuleType

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import CassandraSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.sinks.writer import Writer


def cassandra_writer(sink: CassandraSink, context: Context) -> Writer:
    writer: Writer = _module(sink).CassandraWriter(sink, context)
    return writer


def read_cassandra(sink: CassandraSink, context: Context, schema: StructType) -> DataFrame | None:
    found: DataFrame | None = _module(sink).read_cassandra(sink, context, schema)
    return found


def _module(sink: CassandraSink) -> ModuleType:
    try:
        from millstream.pipelines.spark.sinks import cassandra_table
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cassandra":
            raise
        raise PipelineError(
            "a Cassandra sink needs the package cassandra-driver: pip install 'millstream[cassandra]'", sink.place
        ) from error
    return cassandra_table

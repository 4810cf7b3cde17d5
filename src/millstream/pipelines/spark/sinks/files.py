"""Rows as files in a folder on this machine, HDFS or S3, each batch exactly once.

How a batch is written once is in `manifest`. What is in the folder already stays, whoever wrote it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import FilesSink
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import without_hidden
from millstream.pipelines.spark.sinks.file_batches import FileBatches
from millstream.pipelines.spark.sinks.file_formats import file_options, file_schema, misfit
from millstream.pipelines.spark.sinks.folder import Folder
from millstream.pipelines.spark.sinks.writer import Batch


class FilesWriter:
    """One files sink of one pipeline."""

    def __init__(self, sink: FilesSink, context: Context) -> None:
        self._sink = sink
        self._context = context

    def open(self, schema: StructType) -> None:
        wrong = misfit(self._sink, schema)
        if wrong:
            raise PipelineError(f"files {self._sink.files}: {wrong}", self._sink.place)
        try:
            self._batches = FileBatches(self._sink, self._context.spark, self._sink.files)
        except PipelineError as error:
            raise PipelineError(f"files {error.message}", self._sink.place) from error

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        self._batches.write(without_hidden(rows), batch)
        return None

    def close(self) -> None:
        pass


def read_files(sink: FilesSink, context: Context, schema: StructType) -> DataFrame | None:
    """All that is in the folder, the columns of `schema`; None if there is no such folder."""
    if not Folder(context.spark, sink.files).exists():
        return None
    reader = context.spark.read.format(sink.format).options(**file_options(sink))
    found = reader.schema(file_schema(sink, schema)).load(sink.files)
    return found.select(*[F.col(f"`{field.name}`").cast(field.dataType) for field in schema.fields])

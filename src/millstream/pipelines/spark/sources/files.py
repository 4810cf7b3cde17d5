"""Files that appear in a folder as a source: Spark's file stream, its text decoded like the values of a topic.

JSON and CSV are read as text first and parsed by `values.decoding`, so that a malformed line is its row's error,
whichever columns a pipeline uses; Spark's own readers parse only the columns that are asked for, and find mistakes only
there. What is not one line for each row is brought into that form: a CSV file with a header, or with line breaks in its
values, is cut into values by Spark and put together again; a JSON file that is one document (`multiLine`) is taken
whole, and an array in it as its items. Parquet, ORC and Avro files have their types; a corrupt one stops the query.
"""

from __future__ import annotations

import glob
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.pipelines.description.fields import is_local
from millstream.pipelines.description.sources import FilesSource, Table
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, no_error
from millstream.pipelines.spark.schemas import Schema, given, inferred
from millstream.pipelines.spark.schemas.inferred import SAMPLE, columns_of_texts, without_corrupt
from millstream.pipelines.spark.sources.plain_rows import origin
from millstream.pipelines.spark.values import decoding
from millstream.pipelines.spark.values.options import is_set

LINES = ("json", "csv", "text")
"""Formats whose rows are text."""
_FILE, _MODIFIED, _CUT = "_file", "_modified", "_cut"
_SAMPLE_FILES = 20


class FilesReader:
    """See `sources.reader`."""

    def __init__(self, source: FilesSource, name: str, context: Context) -> None:
        self._source = source
        self._spark = context.spark
        if is_local(source.files) and not glob.has_magic(source.files) and not Path(source.files).exists():
            raise PipelineError(f"there is no folder {source.files}", source.place)
        self._schema = None if source.format == "text" else schema_of(source, name, context)
        self._whole = is_set(source.options, "multiLine")
        self._cut = source.format == "csv" and (self._whole or is_set(source.options, "header"))
        self.can_fail = source.format in LINES

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        source = self._source
        reader = self._spark.readStream.options(**source.options)
        if source.max_files is not None:
            reader = reader.option("maxFilesPerTrigger", str(source.max_files))
        if source.format not in LINES:
            assert self._schema is not None
            reader = reader.format(source.format).schema(self._schema.columns)
        elif self._cut:
            assert self._schema is not None
            texts = StructType([StructField(name, StringType()) for name in self._schema.columns.names])
            reader = reader.format("csv").schema(texts.add(decoding.CORRUPT, StringType()))
            reader = reader.option("columnNameOfCorruptRecord", decoding.CORRUPT).option("mode", "PERMISSIVE")
        else:
            reader = reader.format("text").option("wholetext", str(self._whole and source.format == "json").lower())
        metadata = F.col("_metadata")
        moment = metadata["file_modification_time"].alias(_MODIFIED)
        return reader.load(source.files).select("*", metadata["file_path"].alias(_FILE), moment)

    def initial_offset(self) -> str | None:
        return None

    def raw_batch(self, start: str, end: str) -> DataFrame:
        raise PipelineError(
            "files are read once: which of them belong to a batch only its checkpoint knows", self._source.place
        )

    def rows(self, raw: DataFrame) -> DataFrame:
        if self._source.format not in LINES:
            columns = [F.col(f"`{name}`") for name in raw.columns if name not in (_FILE, _MODIFIED)]
            return raw.select(*columns, self._origin(columns, None), no_error())
        raw = self._lines(raw)
        # Folders like `day=2026-01-31` are columns too.
        folders = [F.col(f"`{name}`") for name in raw.columns if name not in ("value", _FILE, _MODIFIED)]
        found = self._decoding()
        parsed = raw.withColumn(decoding.PARSED, found.parsed)
        columns = found.columns(F.col(decoding.PARSED))
        where = self._origin([], F.col("value").cast("binary"))
        return parsed.select(*columns, *folders, where, found.error(F.col(decoding.PARSED)).alias(ERROR))

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        return None

    def finished(self, offset: str) -> bool:
        return False

    def _lines(self, raw: DataFrame) -> DataFrame:
        """The rows as text in `value`."""
        if self._cut:
            assert self._schema is not None
            names = [F.col(f"`{name}`") for name in self._schema.columns.names]
            line = F.coalesce(F.col(decoding.CORRUPT), F.to_csv(F.struct(*names), dict(self._source.options)))
            others = [name for name in raw.columns if name not in (*self._schema.columns.names, decoding.CORRUPT)]
            return raw.select(line.alias("value"), *(F.col(f"`{name}`") for name in others))
        if self._whole and self._source.format == "json":
            items = F.when(F.startswith(F.ltrim("value"), F.lit("[")), F.from_json("value", "array<string>"))
            each = F.explode(F.coalesce(items, F.array("value"))).alias("value")
            return raw.select(each, *(F.col(f"`{name}`") for name in raw.columns if name != "value"))
        return raw

    def _decoding(self) -> decoding.Decoding:
        if self._source.format == "text":
            return decoding.text()
        assert self._schema is not None
        make = decoding.json if self._source.format == "json" else decoding.csv
        return make(self._schema.columns, self._source.options)

    def _origin(self, columns: list[Column], value: Column | None) -> Column:
        return origin(F.col(_FILE), columns, value)


def schema_of(source: FilesSource | Table, name: str, context: Context) -> Schema:
    """The schema of the files: given, kept, or found in some of them."""
    if source.schema_ != "infer":
        return given(source.schema_, source.place)
    return inferred(context.folder, name, lambda: _columns_of_sample(source, context), source.place)


def _columns_of_sample(source: FilesSource | Table, context: Context) -> StructType:
    spark, options = context.spark, source.options
    path = str(source.files)
    try:
        files = sorted(spark.read.options(**options).text(path).inputFiles())[:_SAMPLE_FILES]
        if not files:
            raise PipelineError(f"there is no file in {path} to infer a schema from: give `schema`", source.place)
        if source.format not in LINES:
            return spark.read.format(source.format).options(**options).load(files).schema
        if source.format == "csv" and (is_set(options, "header") or is_set(options, "multiLine")):
            return spark.read.options(**options).csv(files, inferSchema=True).schema
        if source.format == "json" and is_set(options, "multiLine"):
            return without_corrupt(spark.read.options(**options).json(files).schema)
        lines = spark.read.options(**options).text(files).select("value").limit(SAMPLE)
    except PySparkException as error:
        raise PipelineError(f"{path} cannot be read: {str(error).splitlines()[0]}", source.place) from error
    return columns_of_texts(spark, lines, source.format, options, source.place)

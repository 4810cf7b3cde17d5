"""Log files that grow as a source; the lines come from `tail_stream`."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.sources import TailSource
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, error, no_error
from millstream.pipelines.spark.sources.plain_rows import origin
from millstream.pipelines.spark.sources.tail_stream import NAME, TailStream

STAGE = "source"


class TailReader:
    """See `sources.reader`."""

    can_fail = True

    def __init__(self, source: TailSource, name: str, context: Context) -> None:
        self._name = name
        self._spark = context.spark
        self._options = {"paths": json.dumps(source.tail), "start": source.start}
        self._spark.dataSource.register(TailStream)

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        reader = self._spark.readStream.format(NAME).options(**self._options)
        return (reader if limit is None else reader.option("limit", str(limit))).load()

    def initial_offset(self) -> str | None:
        return json.dumps({"files": {}}) if self._options["start"] == "earliest" else None

    def raw_batch(self, start: str, end: str) -> DataFrame:
        return self._spark.read.format(NAME).options(**self._options).options(**{"from": start, "to": end}).load()

    def rows(self, raw: DataFrame) -> DataFrame:
        text = F.col("value").cast("string")
        columns = [text.alias("value"), F.col("file"), F.col("position")]
        garbled = error(STAGE, "not-utf8", F.lit("the line is not text in UTF-8"))
        problem = F.when(F.is_valid_utf8(text), no_error()).otherwise(garbled).alias(ERROR)
        return raw.select(*columns, origin(F.lit(self._name), columns), problem)

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        return None

    def finished(self, offset: str) -> bool:
        return False

"""A generator as a source: `id`, `timestamp` and SQL expressions of them."""

from __future__ import annotations

import json

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.sources import GeneratorSource
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import no_error
from millstream.pipelines.spark.sources.generate_stream import NAME, SCHEMA, GenerateStream
from millstream.pipelines.spark.sources.plain_rows import origin

_OWN = ("id", "timestamp")


class GeneratorReader:
    """See `sources.reader`."""

    can_fail = False

    def __init__(self, source: GeneratorSource, name: str, context: Context) -> None:
        self._source = source
        self._name = name
        self._spark = context.spark
        self._options = {"rate": str(source.rate), "tasks": str(context.spark.sparkContext.defaultParallelism)}
        self._spark.dataSource.register(GenerateStream)
        self._check()

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        reader = self._spark.readStream.format(NAME).options(**self._options)
        if self._source.limit is not None:
            reader = reader.option("end", str(self._source.limit))
        return (reader if limit is None else reader.option("limit", str(limit))).load()

    def initial_offset(self) -> str | None:
        return json.dumps({"id": 0, "due": 0})

    def raw_batch(self, start: str, end: str) -> DataFrame:
        options = {**self._options, "from": start, "to": end}
        return self._spark.read.format(NAME).options(**options).load()

    def rows(self, raw: DataFrame) -> DataFrame:
        made = raw.select(*self._columns())
        return made.select("*", origin(F.lit(self._name), [F.col(f"`{name}`") for name in made.columns]), no_error())

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        return None

    def finished(self, offset: str) -> bool:
        return self._source.limit is not None and json.loads(offset)["id"] >= self._source.limit

    def _columns(self) -> list[Column]:
        """`id` and `timestamp`, unless an expression has that name, and the expressions."""
        own = [F.col(name) for name in _OWN if name not in self._source.generate]
        return [*own, *(F.expr(text).alias(name) for name, text in self._source.generate.items())]

    def _check(self) -> None:
        rows = self._spark.createDataFrame([], SCHEMA)
        for name, text in self._source.generate.items():
            try:
                rows.select(F.expr(text))
            except PySparkException as error:
                reason = str(error).strip().splitlines()[0]
                raise PipelineError(f"generate.{name}: {reason}", self._source.place) from error

"""Rows on standard output, as JSON lines: to see what a pipeline does. Nothing is kept, nothing is promised."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.pipelines.description.sinks import ConsoleSink
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import without_hidden
from millstream.pipelines.spark.sinks.writer import Batch

MOST_ROWS = 1000
"""Of one batch, if the pipeline does not say how many."""


class ConsoleWriter:
    """One console sink of one pipeline."""

    def __init__(self, sink: ConsoleSink, context: Context) -> None:
        self._most = sink.console if sink.console is not True and sink.console is not False else MOST_ROWS

    def open(self, schema: StructType) -> None:
        """There is nothing to make."""

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        lines = without_hidden(rows).select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("line"))
        found = lines.limit(self._most + 1).collect()
        for row in found[: self._most]:
            print(row["line"])
        if len(found) > self._most:
            print(f"... batch {batch.number} has more than {self._most} rows")
        sys.stdout.flush()
        return None

    def close(self) -> None:
        """There is nothing to close."""

"""Batches of rows as files in a folder, each batch once; what the files and the table sink share.

Spark writes a batch's files into a folder of their own, the manifest says which they are, and then they are moved into
place (`manifest`). The rows are computed once, by the write itself, which also counts them: of a batch without rows,
for which Spark writes a file without rows, nothing stays.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from millstream.pipelines.description.sinks import FileOutput
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.sinks.file_formats import file_options
from millstream.pipelines.spark.sinks.folder import Folder
from millstream.pipelines.spark.sinks.manifest import Manifest, Move
from millstream.pipelines.spark.sinks.writer import Batch


def first_line(error: Exception) -> str:
    """The sentence for a person in an exception of Spark."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def nothing_more(_: list[str]) -> None:
    """Files in place need nothing more."""


class FileBatches:
    """Writes the batches of one sink into one folder."""

    def __init__(
        self,
        sink: FileOutput,
        spark: SparkSession,
        location: str,
        publish: Callable[[list[str]], None] = nothing_more,
    ) -> None:
        """`publish` is given the names of a batch's files, when they are in place; maybe more than once."""
        self._sink = sink
        self._folder = Folder(spark, location)
        self._publish = publish

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """The rows have the columns of the files and no hidden ones."""
        manifest = Manifest(self._folder, batch)
        if manifest.is_done():
            return
        moves = manifest.planned()
        if moves is None:
            moves = self._staged(rows, manifest)
        if moves:
            manifest.carry_out(moves)
            self._publish([move.target for move in moves])
            manifest.finish()

    def _staged(self, rows: DataFrame, manifest: Manifest) -> list[Move]:
        staging = manifest.begin()
        count = Observation()
        writer = rows.observe(count, F.count(F.lit(1)).alias("rows")).write.format(self._sink.format)
        writer = writer.options(**file_options(self._sink)).mode("append")
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        try:
            writer.save(self._folder.path(staging))
        except AnalysisException as error:
            raise PipelineError(f"{self._folder.location}: {first_line(error)}", self._sink.place) from error
        if not count.get["rows"]:
            manifest.drop()
            return []
        moves = manifest.plan(staging)
        if not moves:
            raise PipelineError(
                f"{self._folder.location}: Spark wrote {count.get['rows']} rows, but not where this process can see "
                "them; the folder must be one that all machines of the cluster share",
                self._sink.place,
            )
        return moves

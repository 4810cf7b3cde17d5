"""What a sink of micro-batches does: make its place, then write one batch after the other, each exactly once.

A batch may be handed over again, with the same rows, after a crash: `Batch` names it for good, for the query's id lives
in its checkpoint. A writer either finds that it wrote it already, or makes writing it twice the same as once.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


class Batch(NamedTuple):
    """A micro-batch: the pipeline, the query's id (a new checkpoint is a new id), the sink's name in the pipeline,
    its number."""

    pipeline: str
    query: str
    sink: str
    number: int


class Writer(Protocol):
    """One sink of one running pipeline; called by one thread."""

    def open(self, schema: StructType) -> None:
        """Before the first batch: makes tables and the like. PipelineError says what does not fit."""

    def write(self, rows: DataFrame, batch: Batch) -> DataFrame | None:
        """Writes the visible columns. Returns the rows that the sink refuses, all columns and `_error` set; None:
        none."""

    def close(self) -> None:
        """After the last batch."""

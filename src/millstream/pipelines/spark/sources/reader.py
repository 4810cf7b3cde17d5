"""What a source does: give its rows raw, as a stream or once more as a batch, and make the user's columns of them.

Raw rows are what Spark reads and checkpoints; `rows` is a projection of them that works on streaming and on static rows
alike. So a micro-batch can stream the raw rows and do all the rest, failures included, inside the batch.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame


class Reader(Protocol):
    """One source of one pipeline. Making it checks the source and finds its schema; PipelineError tells mistakes."""

    can_fail: bool
    """Whether `rows` can set `_error`."""

    def raw_stream(self, limit: int | None = None) -> DataFrame:
        """The rows as Spark streams them; `limit`: at most about so many in one micro-batch."""

    def initial_offset(self) -> str | None:
        """Where a first run begins, for sources whose checkpoint does not say it; None: the checkpoint, or nobody."""

    def raw_batch(self, start: str, end: str) -> DataFrame:
        """The same rows as the micro-batch between two offsets as they stand in the checkpoint's offset log.

        PipelineError from sources that cannot give rows twice other than from a checkpoint.
        """

    def rows(self, raw: DataFrame) -> DataFrame:
        """The user's columns, `_origin` and `_error`. A value that does not decode has `_error` set."""

    def end_offsets(self) -> dict[str, dict[int, int]] | None:
        """Topic -> partition -> the offset before which it ends, for a source whose end is set; None for others."""

    def finished(self, offset: str) -> bool:
        """Whether the source has an end, and it is before or at this offset (as the query's progress gives it)."""

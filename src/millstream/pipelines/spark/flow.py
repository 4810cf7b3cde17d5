"""From raw records to the rows that sinks take: the sources' decoding and the steps, on streaming or static DataFrames.

A row that cannot be handled does not stop the others. After each part that can fail on a single row, the rows are
split: the good ones go on, the bad ones are kept as a DataFrame of their own (`_origin` and `_error`). On static
DataFrames the bad rows are counted on the way (`observe`), so that nobody has to look for them in a second pass
unless there are some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from millstream.pipelines.description.pipeline import STREAM
from millstream.pipelines.description.spans import parse_span, span_text
from millstream.pipelines.description.steps import Step
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR, ORIGIN
from millstream.pipelines.spark.sources.reader import Reader
from millstream.pipelines.spark.steps import FALLIBLE, StepContext, apply_step
from millstream.pipelines.spark.tables import RefreshingTable


@dataclass(frozen=True)
class Flowed:
    """How far the rows have come: the good ones, the other sources and tables by name, and the bad rows so far."""

    rows: DataFrame
    frames: Mapping[str, DataFrame]
    bad: tuple[DataFrame, ...] = ()
    counts: tuple[Observation, ...] = ()


class Flow:
    """The sources and steps of one pipeline."""

    def __init__(self, context: Context, readers: Mapping[str, Reader], tables: Mapping[str, RefreshingTable]) -> None:
        self._context = context
        self._readers = readers
        self._tables = tables
        self.main = next(iter(readers))
        """The source whose rows the steps call `stream`."""

    def begin(self, raw: Mapping[str, DataFrame]) -> Flowed:
        """The decoded rows of all sources."""
        flowed = {name: self._decoded(name, frame) for name, frame in raw.items()}
        frames = {name: part.rows for name, part in flowed.items() if name != STREAM}
        frames |= {name: table.frame() for name, table in self._tables.items()}
        return Flowed(
            flowed[self.main].rows,
            frames,
            tuple(bad for part in flowed.values() for bad in part.bad),
            tuple(count for part in flowed.values() for count in part.counts),
        )

    def _decoded(self, name: str, raw: DataFrame) -> Flowed:
        reader = self._readers[name]
        flowed = self._split(Flowed(reader.rows(raw), {}), reader.can_fail)
        watermark = self._context.pipeline.named_sources[name].watermark
        if watermark is None or not raw.isStreaming:
            return flowed
        column, _, delay = watermark.partition(",")
        rows = flowed.rows.withWatermark(column.strip(), span_text(parse_span(delay)))
        return Flowed(rows, flowed.frames, flowed.bad, flowed.counts)

    def resume(self, rows: DataFrame) -> Flowed:
        """The rows of a micro-batch that come out of the streaming part already; the tables as they are now."""
        return Flowed(rows, {name: table.frame() for name, table in self._tables.items()})

    def apply(self, flowed: Flowed, steps: Sequence[Step]) -> Flowed:
        """The rows after the steps."""
        for step in steps:
            context = StepContext(self._context, flowed.frames, step.place)
            flowed = Flowed(apply_step(flowed.rows, step, context), flowed.frames, flowed.bad, flowed.counts)
            flowed = self._split(flowed, type(step) in FALLIBLE)
        return flowed

    def _split(self, flowed: Flowed, can_fail: bool) -> Flowed:
        if not can_fail or ERROR not in flowed.rows.columns:
            return flowed
        rows, counts = flowed.rows, flowed.counts
        if not rows.isStreaming:
            count = Observation()
            rows = rows.observe(count, F.count_if(F.col(ERROR).isNotNull()).alias("bad"))
            counts = (*counts, count)
        hidden = [name for name in (ORIGIN, ERROR) if name in rows.columns]
        bad = rows.where(F.col(ERROR).isNotNull()).select(*hidden)
        return Flowed(rows.where(F.col(ERROR).isNull()), flowed.frames, (*flowed.bad, bad), counts)


def seen_to_be_bad(flowed: Flowed) -> list[DataFrame]:
    """The frames of bad rows that are not known to be empty, after the good rows were computed."""
    return [frame for frame, count in zip(flowed.bad, flowed.counts, strict=True) if _counted(count) != 0]


def _counted(count: Observation) -> int | None:
    """None if that part was not computed, or Spark does not tell, so that nobody knows."""
    jvm = count._jo
    return int(count.get["bad"]) if jvm is not None and jvm.future().isCompleted() else None

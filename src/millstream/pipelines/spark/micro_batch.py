"""What happens with one micro-batch of `main`: the rest of the steps, every sink, the dead letters.

Spark hands over the rows of a batch and its number, and writes the number down as done when `__call__` returns. The
same number comes again, with the same rows, if it did not return: sinks know the batches they have written. Between
two batches the handler can be asked to let no further one in (`close`), which is how a query is stopped without a
batch half done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.pipelines.description.sinks import Sink
from millstream.pipelines.spark.bad_records import write_dead_letters
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.flow import Flowed, seen_to_be_bad
from millstream.pipelines.spark.plan import Plan, sends_late_aside
from millstream.pipelines.spark.rows import HIDDEN, visible_schema
from millstream.pipelines.spark.sinks import WRITERS, sink_name
from millstream.pipelines.spark.sinks.writer import Batch, Writer
from millstream.pipelines.spark.steps import late

QUERY_ID = "sql.streaming.queryId"
HURRY_SECONDS = 0.1
"""How soon a wait notices that there is no more time."""


class Closed(Exception):  # noqa: N818 - nothing is wrong: the query is being stopped
    """No further batch is taken."""


class Gate:
    """Lets batches in one at a time, until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self.last: int | None = None
        """The last batch that went through."""

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._closed:
            self._lock.release()
            raise Closed

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def close(self, hurry: threading.Event, seconds: float) -> int | None:
        """Lets no batch in any more and waits until the one inside is through, or `hurry`; the last that went
        through."""
        self._closed = True
        deadline = time.monotonic() + seconds
        while not self._lock.acquire(timeout=HURRY_SECONDS):
            if hurry.is_set() or time.monotonic() > deadline:
                return None
        self._lock.release()
        return self.last


class BatchHandler:
    """The function for foreachBatch of a pipeline's micro-batch sinks."""

    def __init__(self, plan: Plan, sinks: Sequence[int], watermark_before: Callable[[int], int]) -> None:
        """`watermark_before`: of a batch's number, the watermark by which its rows are late."""
        self._plan = plan
        self._watermark_before = watermark_before
        self._sinks = [_OpenSink(plan.context, index) for index in sinks]
        self.gate = Gate()
        self.dead_letters = 0

    def __call__(self, rows: DataFrame, number: int) -> None:
        with self.gate:
            query = rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or ""
            with _kept(rows, sends_late_aside(self._plan.context.pipeline)):  # state is computed once
                self._write(self._flow(rows, number), query, number)
            self.gate.last = number

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

    def _flow(self, rows: DataFrame, number: int) -> Flowed:
        flow, plan = self._plan.flow, self._plan
        if not plan.head:
            return flow.apply(flow.begin({flow.main: rows}), plan.tail)
        if sends_late_aside(plan.context.pipeline):
            rows, late_rows = late.split(rows, self._watermark_before(number))
            if late_rows is not None:
                self.dead_letters += write_dead_letters(plan.context, [late_rows])
        return flow.apply(flow.resume(rows), plan.tail)

    def _write(self, flowed: Flowed, query: str, number: int) -> None:
        with _kept(flowed.rows, len(self._sinks) > 1):
            for sink in self._sinks:
                rejected = sink.write(flowed.rows, query, number)
                if rejected is not None:
                    self.dead_letters += write_dead_letters(self._plan.context, [rejected])
            bad = seen_to_be_bad(flowed)
            if bad:
                self.dead_letters += write_dead_letters(self._plan.context, bad)


class _OpenSink:
    """A sink and its writer, which is opened with the first batch, when the columns are known."""

    def __init__(self, context: Context, index: int) -> None:
        self._context = context
        self._sink = context.pipeline.sinks[index]
        self._name = sink_name(context.pipeline, index)
        self._writer: Writer | None = None

    def write(self, rows: DataFrame, query: str, number: int) -> DataFrame | None:
        part = part_for(self._sink, rows)
        if self._writer is None:
            writer = WRITERS[type(self._sink)](self._sink, self._context)
            writer.open(visible_schema(part))
            self._writer = writer
        return self._writer.write(part, Batch(self._context.pipeline.name, query, self._name, number))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _kept(rows: DataFrame, several: bool) -> Iterator[None]:
    """The rows are computed once, if they are used several times in the block."""
    if several:
        rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        if several:
            rows.unpersist()


def part_for(sink: Sink, rows: DataFrame) -> DataFrame:
    """The rows and columns that the sink takes; hidden columns stay."""
    if sink.where is not None:
        rows = rows.where(sink.where)
    if sink.select:
        hidden = [F.col(name) for name in HIDDEN if name in rows.columns]
        rows = rows.select(*map(F.expr, sink.select), *hidden)
    return rows

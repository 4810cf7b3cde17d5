"""`millstream-generate`: rows that fall due at a steady rate, as a stream.

An offset is the id of the next row and the moment at which it is due, in microseconds since 1970. The moments of a
micro-batch's rows follow from its end alone, so the same batch has the same rows whenever it is asked for. After a
pause (a restart) the next row is due at once, and those that would have been due meanwhile are not made up for; a query
that is merely slow catches up.

A run that ends (Spark's availableNow) has all rows up to the limit, the last of them due now; without a limit, those of
one second.

This module is imported by Spark's Python workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from time import sleep, time_ns
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

NAME = "millstream-generate"
SCHEMA = "id BIGINT, timestamp TIMESTAMP"
LIMIT = 1_000_000
"""How many rows a micro-batch has at most, if nobody says."""
_CHUNK = 50_000
_SMALL = 10_000
"""So many rows are not worth a task of their own."""
_LONGEST_NAP = 0.25
_SECOND = 1_000_000

Offset = dict[str, Any]
_ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("timestamp", pa.timestamp("us", tz="UTC"))])


class GenerateStream(DataSource):
    """Options: `rate`, `end` (the id at which it ends), `limit` (of a micro-batch), `tasks`; a batch: `from`, `to`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> GenerateStreamReader:  # noqa: N802 - Spark's name
        end = self.options.get("end")
        return GenerateStreamReader(
            rate=int(self.options["rate"]),
            end=None if end is None else int(end),
            limit=int(self.options.get("limit", LIMIT)),
            tasks=int(self.options.get("tasks", 1)),
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        start, end = json.loads(self.options["from"]), json.loads(self.options["to"])
        return GenerateBatchReader(split(start, end, int(self.options["rate"]), int(self.options.get("tasks", 1))))


class Rows(InputPartition):
    """The rows from one id up to another; `anchor` is the moment at which the row with id 0 would have been due."""

    def __init__(self, first: int, end: int, anchor: int, rate: int) -> None:
        self.first = first
        self.end = end
        self.anchor = anchor
        self.rate = rate


class GenerateStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in one Python process beside the driver; `read` in the workers."""

    def __init__(self, rate: int, end: int | None, limit: int, tasks: int) -> None:
        self._rate = rate
        self._end = end
        self._limit = limit
        self._tasks = tasks
        self._began = _now()
        self._first_call = True
        self._bounded = False
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"id": 0, "due": self._began}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._bounded = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        first, due = start["id"], start["due"]
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        if self._bounded:
            return self._bounded_offset(start, rows)
        if self._first_call:
            due = max(due, self._began)
            self._first_call = False
        ready = min(rows, (_now() - due) * self._rate // _SECOND + 1)
        if self._end is not None:
            ready = min(ready, self._end - first)
        if ready > 0:
            return {"id": first + ready, "due": due + _period(ready, self._rate)}
        wait = _LONGEST_NAP if self._end == first else (due - _now()) / _SECOND
        sleep(min(max(wait, 0.0), _LONGEST_NAP))
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return split(start, end, self._rate, self._tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return batches(partition)

    def commit(self, end: Offset) -> None:
        """Nothing is kept."""

    def stop(self) -> None:
        """Nothing is open."""

    def _bounded_offset(self, start: Offset, rows: int) -> Offset:
        first = start["id"]
        if self._target is None:
            self._target = max(first, self._end) if self._end is not None else first + self._rate
        end = min(self._target, first + rows)
        if end == first:
            return start
        return {"id": end, "due": self._began - _period(self._target - end, self._rate)}


class GenerateBatchReader(DataSourceReader):
    """The rows between two offsets once more."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._parts) or [Rows(0, 0, 0, 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return batches(partition)


def split(start: Offset, end: Offset, rate: int, tasks: int) -> list[Rows]:
    """The rows of a micro-batch, in as many parts as are worth it."""
    first, last = start["id"], end["id"]
    count = last - first
    if count <= 0:
        return []
    anchor = end["due"] - _period(last, rate)
    parts = max(1, min(tasks, count // _SMALL))
    edges = [first + count * part // parts for part in range(parts + 1)]
    return [Rows(edges[part], edges[part + 1], anchor, rate) for part in range(parts)]


def batches(part: Rows) -> Iterator[pa.RecordBatch]:
    """The rows of a part."""
    for first in range(part.first, part.end, _CHUNK):
        ids = np.arange(first, min(first + _CHUNK, part.end), dtype=np.int64)
        # Whole seconds and the rest apart: the product of both would not fit into 64 bits for long.
        moments = part.anchor + ids // part.rate * _SECOND + ids % part.rate * _SECOND // part.rate
        yield pa.RecordBatch.from_arrays([pa.array(ids), pa.array(moments).cast(_ARROW.field(1).type)], schema=_ARROW)


def _period(rows: int, rate: int) -> int:
    return rows * _SECOND // rate


def _now() -> int:
    return time_ns() // 1000

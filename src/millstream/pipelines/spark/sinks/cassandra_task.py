"""What Spark's Python workers do for a Cassandra sink: write rows, many at once, and read token ranges.

Every row of a batch is written with a timestamp that the driver of Spark chose for the batch, plus the place of the
row: so a batch that comes later wins over an earlier one whichever machine writes it, a late write of a dead attempt
changes nothing, and of rows with one key in a batch the last wins. Nothing is raised for what the store says: refused
rows and the reason to stop come back as rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args
from pyspark import TaskContext

from millstream.pipelines.spark.sinks.cassandra_session import OF_THE_ROW, PASSING, Address, session_for, words
from millstream.pipelines.spark.sinks.patience import Patience

CONCURRENCY = 128
LARGEST_ROW = 15 * 1024 * 1024
"""Bytes of a row. A server drops the connection over a request of more than 16 MiB, and says nothing about it."""
CHUNK_STEP = 1000
"""Microseconds between the timestamps of two Arrow batches of a task; tasks are told apart within."""
OUTCOME = "mark bigint, error string, message string, stop boolean"


class Insert(NamedTuple):
    """All that a worker must know. `key`: which of the values are the primary key."""

    address: Address
    statement: str
    converters: tuple[Callable[[Any], Any] | None, ...]
    key: tuple[int, ...]
    timestamp: int
    patience: float


class Stop(Exception):  # noqa: N818 - it is the pipeline that stops
    """The store cannot take rows now."""


class _Row(NamedTuple):
    mark: int
    values: list[Any]


_prepared: dict[tuple[Address, str], Any] = {}
"""The process's prepared statements."""


def write_rows(insert: Insert, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes the rows; gives back the refused ones, or why it stopped. The first column is the row's mark."""
    task = TaskContext.get()
    place = (task.partitionId() if task else 0) % CHUNK_STEP
    for number, batch in enumerate(batches):
        outcome: list[tuple[int, str, str, bool]] = []
        try:
            for row, error in _write_chunk(insert, batch, insert.timestamp + number * CHUNK_STEP + place):
                outcome.append((row.mark, type(error).__name__, words(error), False))
        except Stop as stop:
            outcome.append((0, "", str(stop), True))
        if outcome:
            marks, errors, messages, stops = zip(*outcome, strict=True)
            arrays = [pa.array(marks, pa.int64()), pa.array(errors), pa.array(messages), pa.array(stops)]
            yield pa.RecordBatch.from_arrays(arrays, ["mark", "error", "message", "stop"])
        if outcome and outcome[-1][3]:
            return


def _write_chunk(insert: Insert, batch: pa.RecordBatch, timestamp: int) -> Iterator[tuple[_Row, Exception]]:
    """Writes the rows of a batch; the refused ones and why. Of rows with one key the last good one is written."""
    waiting: dict[Any, list[_Row]] = {}
    for mark, *values in zip(*[column.to_pylist() for column in batch.columns], strict=True):
        row = _Row(mark, values)
        size = sum(len(value) for value in values if isinstance(value, str | bytes))
        if size > LARGEST_ROW:
            yield row, ValueError(f"the row has {size} bytes, and Cassandra takes {LARGEST_ROW} at most")
            continue
        try:
            for i, convert in enumerate(insert.converters):
                if convert is not None and values[i] is not None:
                    values[i] = convert(values[i])
        except OF_THE_ROW as error:
            yield row, error
            continue
        waiting.setdefault(repr([values[i] for i in insert.key]), []).append(row)
    while waiting:
        last = {key: rows.pop() for key, rows in waiting.items()}
        refused = _write(insert, [[*row.values, timestamp] for row in last.values()])
        for (key, row), refusal in zip(last.items(), refused, strict=True):
            if refusal is not None:
                yield row, refusal
            if refusal is None or not waiting[key]:
                del waiting[key]


def _write(insert: Insert, rows: Sequence[list[Any]]) -> list[Exception | None]:
    """Writes all rows at once; for each the error if it was refused. Passing trouble is waited for, then `Stop`."""
    refused: list[Exception | None] = [None] * len(rows)
    left = list(range(len(rows)))

    def attempt() -> None:
        nonlocal left
        session, known = session_for(insert.address), (insert.address, insert.statement)
        if known not in _prepared:
            _prepared[known] = session.prepare(insert.statement)
        results = execute_concurrent_with_args(
            session,
            _prepared[known],
            [rows[i] for i in left],
            concurrency=CONCURRENCY,
            raise_on_first_error=False,
        )
        again, trouble = [], None
        for i, (success, answer) in zip(left, results, strict=True):
            if success:
                continue
            if isinstance(answer, PASSING):
                again.append(i)
                trouble = answer
            elif isinstance(answer, OF_THE_ROW):
                refused[i] = answer
            else:
                raise answer
        left = again
        if trouble is not None:
            raise trouble

    try:
        Patience(insert.patience).persist(attempt, lambda error: isinstance(error, PASSING))
    except PASSING as error:
        raise Stop(f"{words(error)} (tried for {insert.patience:.0f} s)") from error
    except Exception as error:
        raise Stop(f"{words(error)} [{type(error).__name__}]") from error
    return refused


class Select(NamedTuple):
    """What to read, and how: `?` of the statement are the first token (not included) and the last."""

    address: Address
    statement: str
    converters: tuple[Callable[[Any], Any], ...]
    schema: pa.Schema


def read_ranges(select: Select, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the token ranges that come in, `first` and `last`, a page at a time."""
    session = session_for(select.address)
    statement = session.prepare(select.statement)
    for batch in batches:
        for first, last in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            found = session.execute(statement, (first, last))
            while True:
                page = [
                    [
                        None if value is None else convert(value)
                        for value, convert in zip(row, select.converters, strict=True)
                    ]
                    for row in found.current_rows
                ]
                columns = list(zip(*page, strict=True)) or [()] * len(select.schema)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, select.schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=select.schema)
                if not found.has_more_pages:
                    break
                found.fetch_next_page()

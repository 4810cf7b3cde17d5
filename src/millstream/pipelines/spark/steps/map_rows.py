"""Map: a Python function of one row, in the workers. A row is a dict; so is what comes back, or a list of them, or
None.

Rows come and go as Arrow record batches. The raw record in `_origin` is never turned into Python: it is taken along
by the row's position. An exception is the error of its row; so is a value that is not of the type that `returns`
says. Timestamps are datetimes with a time zone; one without is taken to be UTC.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, SupportsIndex

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, _parse_datatype_string

from millstream.pipelines.description.steps import MapStep
from millstream.pipelines.spark.rows import ERROR, ERROR_TYPE, HIDDEN, ORIGIN
from millstream.pipelines.spark.steps import functions
from millstream.pipelines.spark.steps.analysis import schema_of
from millstream.pipelines.spark.steps.context import StepContext

RowFunction = Callable[[dict[str, Any]], Any]
WRONG_TYPE = "TypeError"


def apply_map(rows: DataFrame, step: MapStep, context: StepContext) -> DataFrame:
    returns = schema_of(step.returns, context.place, "returns")
    error = StructField(ERROR, _parse_datatype_string(ERROR_TYPE))
    origin = [field for field in rows.schema.fields if field.name == ORIGIN]
    schema = StructType([*(StructField(field.name, field.dataType) for field in returns.fields), *origin, error])
    function = functions.load(step.function, context.place)
    return rows.mapInArrow(RowMapper(function, functions.name_of(step.function), schema), schema)


class RowMapper:
    """What runs in a worker: record batches in, record batches out."""

    def __init__(self, function: RowFunction, name: str, schema: StructType) -> None:
        self._function = function
        self._name = name
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        columns = [field for field in schema if field.name not in HIDDEN]
        for batch in batches:
            yield self._mapped(batch, schema, columns)

    def _mapped(self, batch: pa.RecordBatch, schema: pa.Schema, columns: Sequence[pa.Field]) -> pa.RecordBatch:
        inputs = batch.select([name for name in batch.schema.names if name not in HIDDEN])
        results: list[dict[str, Any]] = []
        errors: list[dict[str, str] | None] = []
        positions: list[int] = []
        known = {field.name for field in columns}
        for position, row in enumerate(inputs.to_pylist(maps_as_pydicts="strict")):
            failure = None
            try:
                found = _rows_of(self._function(row), known)
            except Exception as error:
                found, failure = [{}], self._error(type(error).__name__, _message(error))
            results += found
            errors += [failure] * len(found)
            positions += [position] * len(found)
        arrays = {field.name: self._column(field, results, errors) for field in columns}
        for name in arrays:  # a row with an error has no values, not even the good ones
            arrays[name] = _where_fine(arrays[name], errors)
        if ORIGIN in schema.names:
            arrays[ORIGIN] = batch.column(ORIGIN).take(pa.array(positions, pa.int64()))
        arrays[ERROR] = pa.array(errors, schema.field(ERROR).type)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], names=schema.names)

    def _column(
        self, field: pa.Field, results: Sequence[Mapping[str, Any]], errors: list[dict[str, str] | None]
    ) -> pa.Array:
        """The values of one column. What is not of its type becomes null, and its row's error is noted."""
        values = [result.get(field.name) for result in results]
        try:
            _refuse_what_arrow_takes(values, field.type)
            return pa.array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for position, value in enumerate(values):
                if not _fits(value, field.type):
                    values[position] = None
                    type_ = self._schema[field.name].dataType.simpleString()
                    message = f"it returned {value!r:.100} for {field.name}, which is not of type {type_}"
                    errors[position] = errors[position] or self._error(WRONG_TYPE, message)
            return pa.array(values, field.type)

    def _error(self, kind: str, message: str) -> dict[str, str]:
        return {"stage": self._name, "error": kind, "message": message}


def _rows_of(result: Any, known: set[str]) -> list[dict[str, Any]]:
    """What a function returned, as a list of rows."""
    found = [] if result is None else [result] if isinstance(result, Mapping) else result
    if not isinstance(found, list | tuple):
        raise TypeError(f"it must return a dict, a list of dicts or None, not {type(result).__name__}")
    for row in found:
        if not isinstance(row, Mapping):
            raise TypeError(f"it must return dicts; in the list is a value of type {type(row).__name__}")
        unknown = sorted(str(name) for name in row if name not in known)
        if unknown:
            raise TypeError(f"it returned {', '.join(unknown)}, which `returns` does not name")
    return [dict(row) for row in found]


def _message(error: Exception) -> str:
    """What an exception says, and where in the user's code it comes from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if last.filename == __file__ else f" ({last.filename.rpartition('/')[2]}:{last.lineno})"
    return f"{error}{where}"


def _fits(value: Any, type_: pa.DataType) -> bool:
    try:
        _refuse_what_arrow_takes([value], type_)
        pa.array([value], type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _refuse_what_arrow_takes(values: Sequence[Any], type_: pa.DataType) -> None:
    """Arrow cuts 1.5 to 1, and takes 5 to be five microseconds after 1970. TypeError."""
    wanted: type | None = None
    if pa.types.is_integer(type_):
        wanted = SupportsIndex
    elif pa.types.is_timestamp(type_):
        wanted = datetime
    elif pa.types.is_date(type_):
        wanted = date
    if wanted is not None and not all(value is None or isinstance(value, wanted) for value in values):
        raise TypeError(f"not all values are of type {wanted.__name__}")


def _where_fine(array: pa.Array, errors: Sequence[object]) -> pa.Array:
    if not any(errors):
        return array
    fine = pa.array([position if error is None else None for position, error in enumerate(errors)], pa.int64())
    return array.take(fine)

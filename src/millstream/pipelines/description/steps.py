"""What happens to the rows on their way. In YAML a step is a mapping with one key, its name:

    - filter: status_code >= 400                      # one value: the step's first field
    - deduplicate: {by: [id], within: 10 minutes}     # or all its fields

Row steps (parse, cast, filter, select, add, drop, lookup, map) keep a row's origin; steps that fail on a single row
(parse, cast, lookup, map) send it to the dead letters and go on. Look-ups are in `lookup`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from millstream.pipelines.description.element import Element
from millstream.pipelines.description.fields import (
    Columns,
    Match,
    MaybeSpan,
    Names,
    Span,
    Sql,
    TableName,
    Words,
    meant,
    names,
    seconds,
    split_watermark,
)
from millstream.pipelines.description.lookup import LookupStep as LookupStep
from millstream.pipelines.description.references import Class, Function
from millstream.pipelines.description.step import CodeStep
from millstream.pipelines.description.step import Step as Step

PARSERS = ("apache-access-log", "apache-combined-log", "json", "csv", "key-value")
"""The formats that `parse` knows by name."""
_NAMED_GROUP = re.compile(r"\(\?P?<[a-zA-Z]")


class SqlStep(Step):
    """A SELECT over `stream`, the other sources and the tables, by their names. Its result is the new `stream`."""

    short: ClassVar[str | None] = "sql"
    sql: Sql = Field(description="Spark SQL.")


def _known_format(value: str) -> str:
    if value in PARSERS or _NAMED_GROUP.search(value):
        return value
    raise ValueError(
        f"{value!r} is neither a known format ({', '.join(PARSERS)}) nor a regular expression with named groups, as "
        f"(?<user>[a-z]+){meant(value, PARSERS)}"
    )


class ParseStep(Step):
    """Takes a text column apart: a known log format, a regular expression with named groups, JSON, CSV or key=value."""

    short: ClassVar[str | None] = "format"
    format: Annotated[str, AfterValidator(_known_format), Words("a format")] = Field(
        description="`apache-access-log`, `apache-combined-log`, `json`, `csv`, `key-value`, or a regular expression "
        "with named groups."
    )
    column: str = Field(default="value", description="The column to read; it is replaced by what was found.")
    schema_: Columns | None = Field(
        default=None, alias="schema", description="Columns and types (DDL); json and csv need it."
    )
    keep: bool = Field(default=False, description="Keep the column that was read.")

    @model_validator(mode="after")
    def _complete(self) -> ParseStep:
        if self.format in ("json", "csv") and self.schema_ is None:
            raise ValueError(f"{self.format} needs `schema`, the columns and their types: id bigint, name string")
        return self


class CastStep(Step):
    """Changes columns' types. A value that cannot be cast is an error of its row, not a silent null."""

    short: ClassVar[str | None] = "columns"
    columns: dict[str, str] = Field(min_length=1, description="Column -> Spark type.")


class FilterStep(Step):
    """Keeps the rows for which the condition is true."""

    short: ClassVar[str | None] = "where"
    where: Sql = Field(description="A SQL condition.")


class SelectStep(Step):
    """Only these columns; each may be an expression with a name: `upper(city) AS city`."""

    short: ClassVar[str | None] = "columns"
    columns: Names = Field(min_length=1, description="Columns or expressions.")


class AddStep(Step):
    """More columns."""

    short: ClassVar[str | None] = "columns"
    columns: dict[str, Sql] = Field(min_length=1, description="Column -> SQL expression.")


class DropStep(Step):
    """All columns but these."""

    short: ClassVar[str | None] = "columns"
    columns: Names = Field(min_length=1, description="Columns.")


class WatermarkStep(Step):
    """Says which column is the event time and how late rows may be; later ones are late data."""

    column: str = Field(description="The event time, a timestamp.")
    delay: Span = Field(description="How late a row may be.")
    late: Literal["drop", "dead-letter"] = Field(
        default="drop", description="Late rows are dropped and counted, or sent aside."
    )

    @classmethod
    def long_form(cls, given: Any) -> Any:
        """As for a source, `event_time, 10 minutes` is enough."""
        if not isinstance(given, str):
            return super().long_form(given)
        column, delay = split_watermark(given)
        return {"column": column, "delay": delay}


class DeduplicateStep(Step):
    """Keeps the first row of those with the same values."""

    short: ClassVar[str | None] = "by"
    by: Names = Field(min_length=1, description="The columns that make rows the same.")
    within: MaybeSpan = Field(
        default=seconds(None), description="Only within this time of one another (needs a watermark); bounds the state."
    )


class Window(Element):
    """Windows over the event time: tumbling (`size`), sliding (`size` and `slide`) or sessions (`gap`)."""

    column: str = Field(description="The event time.")
    size: MaybeSpan = Field(default=seconds(None), description="How long a window is.")
    slide: MaybeSpan = Field(default=seconds(None), description="How often one begins, if they overlap.")
    gap: MaybeSpan = Field(default=seconds(None), description="A session ends after this time without rows.")

    @model_validator(mode="after")
    def _one_kind(self) -> Window:
        if (self.size is None) == (self.gap is None):
            raise ValueError("give `size` (tumbling, or sliding with `slide`) or `gap` (sessions)")
        if self.slide is not None and self.size is None:
            raise ValueError("`slide` is for windows with a `size`; sessions have none")
        if self.slide is not None and self.size is not None and not 0 < self.slide <= self.size:
            raise ValueError(
                "`slide` must be longer than nothing and not longer than `size`: between windows rows would get lost"
            )
        return self


class AggregateStep(Step):
    """Groups rows and computes; with `window` per window, whose bounds become `window_start` and `window_end`."""

    by: Names = Field(default=names(), description="Columns or expressions with a name.")
    compute: dict[str, Sql] = Field(min_length=1, description="Column -> SQL aggregate: `count(*)`, `sum(amount)`.")
    window: Window | None = Field(default=None, description="Time windows.")


class JoinStep(Step):
    """Joins the stream with another source or a table."""

    with_: Annotated[TableName, Field(alias="with", description="The name of a source or table.")]
    on: Match = Field(
        description="Columns of the same name, or a condition with `stream.` and the other's name before columns."
    )
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = Field(
        default="inner", description="The join's kind."
    )


class PythonStep(CodeStep):
    """A function from DataFrame to DataFrame: `module:function`, `file.py:function`, or the function itself.

    Its first parameter is the stream; further ones are the sources and tables of their names.
    """

    short: ClassVar[str | None] = "function"
    code: ClassVar[str] = "function"
    function: Function = Field(description="The function.")


class MapStep(CodeStep):
    """A Python function of a row (a dict) that returns a row, a list of rows or None; an exception is the row's."""

    short: ClassVar[str | None] = "function"
    code: ClassVar[str] = "function"
    function: Function = Field(description="The function.")
    returns: Columns = Field(description="The columns it returns, as DDL.")


class StateStep(CodeStep):
    """Stateful Python: a `StatefulProcessor` of PySpark's transformWithState, a state of its own for each key."""

    code: ClassVar[str] = "processor"
    processor: Class = Field(description="The class: `module:Class`, `file.py:Class`, or itself.")
    by: Names = Field(min_length=1, description="The key's columns.")
    returns: Columns = Field(description="The columns it returns, as DDL.")
    time: Literal["none", "processing", "event"] = Field(default="none", description="Which time its timers use.")
    output: Literal["update", "append"] = Field(default="update", description="The output mode.")


STEPS: dict[str, type[Step]] = {
    "sql": SqlStep,
    "parse": ParseStep,
    "cast": CastStep,
    "filter": FilterStep,
    "select": SelectStep,
    "add": AddStep,
    "drop": DropStep,
    "watermark": WatermarkStep,
    "deduplicate": DeduplicateStep,
    "aggregate": AggregateStep,
    "join": JoinStep,
    "lookup": LookupStep,
    "python": PythonStep,
    "map": MapStep,
    "state": StateStep,
}
"""The step's name in YAML -> what it is."""

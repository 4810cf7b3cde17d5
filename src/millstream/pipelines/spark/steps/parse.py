"""Parse: a text column taken apart into columns, by SQL expressions alone. What does not fit is an error of its row.

A regular expression is matched once for each row: all groups are put side by side by one replacement and then split.
(Spark's `regexp_extract` matches once for each group.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.pipelines.description.element import Place
from millstream.pipelines.description.steps import ParseStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import rows as hidden
from millstream.pipelines.spark.rows import ERROR
from millstream.pipelines.spark.steps.analysis import must_have, quoted, schema_of
from millstream.pipelines.spark.steps.checks import Check, first_error, shown, unreadable
from millstream.pipelines.spark.steps.context import StepContext
from millstream.pipelines.spark.steps.formats import FORMATS, TextColumn, TextFormat
from millstream.pipelines.spark.steps.regex import Groups, named_groups

STAGE = KIND = "parse"
SEPARATOR = "\ufdd0"
"""A code point that Unicode keeps for internal use; a text that has it in a group is not matched."""
_PARSED = "_parsed"
_VALUES = "_values"
_CORRUPT = "_corrupt"


class Parser(NamedTuple):
    """How a text is read: into an intermediate value (`_parsed`), the columns out of that, and what may be wrong with
    them."""

    parsed: Column
    columns: dict[str, Column]
    checks: list[Check]


def apply_parse(rows: DataFrame, step: ParseStep, context: StepContext) -> DataFrame:
    must_have(rows, [step.column], context.place)
    column = next(name for name in rows.columns if name.lower() == step.column.lower())
    text = F.col(quoted(column)).cast("string")
    make = PARSERS.get(step.format, _regular_expression)
    parser = make(step, text, context.place)
    kept = [name for name in rows.columns if name != ERROR and (step.keep or name != column)]
    _refuse_common(kept, parser, context.place)
    missing = Check(KIND, text.isNull(), F.lit(f"column {column} is null"))
    values = F.struct(*(value.alias(name) for name, value in parser.columns.items()))
    # Three projections, for Spark computes what is dear in one of them once, however often the next one uses it. It
    # would
    # all the same compute it again in a filter on `_error` that it moves down, if it did not take a match (of anything)
    # to be dear.
    return (
        rows.withColumn(_PARSED, parser.parsed)
        .withColumn(_VALUES, F.when(text.rlike("^"), values))
        .select(
            *(F.col(quoted(name)) for name in kept if name != hidden.ORIGIN),
            *(F.col(_VALUES)[name].alias(name) for name in parser.columns),
            *(name for name in kept if name == hidden.ORIGIN),
            first_error(STAGE, [missing, *parser.checks]),
        )
    )


def _unreadable(field: Column, column: str, type_: str) -> Check:
    return unreadable(KIND, column, type_, field, F.col(_VALUES)[column])


def _refuse_common(kept: Sequence[str], parser: Parser, place: Place | None) -> None:
    common = {name.lower() for name in kept} & {name.lower() for name in parser.columns}
    if common:
        raise PipelineError(
            f"parsing gives the column{'s' * (len(common) > 1)} {', '.join(sorted(common))}, which the rows have "
            "already: drop or rename what is there",
            place,
        )


def _no_match(wrong: Column, text: Column, what: str) -> Check:
    return Check(KIND, wrong, F.concat(F.lit(f"this is not {what}: '"), shown(text), F.lit("'")))


def _named_format(step: ParseStep, text: Column, place: Place | None) -> Parser:
    return _by_groups(FORMATS[step.format], text, f"a line of {step.format}", place)


def _regular_expression(step: ParseStep, text: Column, place: Place | None) -> Parser:
    """Columns are the named groups; their types are those of `schema`, or string."""
    groups = _groups(step.format, place)
    if not groups.numbers:
        raise PipelineError(
            f"{step.format!r} is neither a format ({', '.join(PARSERS)}) nor a regular expression with named groups, "
            "such as (?<user>\\w+)",
            place,
        )
    fields = _fields(step, place) if step.schema_ else [StructField(name, StringType()) for name in groups.numbers]
    unknown = [field.name for field in fields if field.name not in groups.numbers]
    if unknown:
        raise PipelineError(f"`schema` names {', '.join(unknown)}, and the expression has no such group", place)
    columns = tuple(TextColumn(field.name, field.dataType.simpleString()) for field in fields)
    return _by_groups(TextFormat(step.format, columns, nothing=()), text, "matched by the expression", place)


def _by_groups(format_: TextFormat, text: Column, what: str, place: Place | None) -> Parser:
    groups = _groups(format_.pattern, place)
    names = list(groups.numbers)
    parsed = F.col(_PARSED)
    columns, checks = {}, [_no_match(F.size(parsed) != len(names) + 1, text, what)]
    for column in format_.columns:
        found = F.get(parsed, F.lit(names.index(column.group or column.name) + 1))
        plain = column.type == "string" and not column.read
        nothing = format_.nothing if plain else format_.nothing or ("",)
        field = F.when(~found.isin(*nothing), found) if nothing else found
        columns[column.name] = field if plain else _read(column, field)
        if not plain:
            checks.append(_unreadable(field, column.name, column.type))
    return Parser(_matched(text, groups), columns, checks)


def _read(column: TextColumn, text: Column) -> Column:
    return column.read(text) if column.read else text.try_cast(column.type)


def _groups(pattern: str, place: Place | None) -> Groups:
    try:
        return named_groups(pattern)
    except ValueError as error:
        raise PipelineError(f"the regular expression {pattern!r} is not right: {error}", place) from error


def _matched(text: Column, groups: Groups) -> Column:
    """An array: something, then the groups' texts; of another length if there is no match."""
    pattern = rf"\A[\s\S]*?(?:{groups.pattern})[\s\S]*\z"
    side_by_side = "".join(f"{SEPARATOR}${number}" for number in groups.numbers.values())
    return F.split(F.regexp_replace(text, F.lit(pattern), F.lit(side_by_side)), SEPARATOR)


def _json(step: ParseStep, text: Column, place: Place | None) -> Parser:
    fields = _fields(step, place)
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    return _by_struct(
        F.from_json(text, schema, {"columnNameOfCorruptRecord": _CORRUPT}), fields, text, "the JSON wanted"
    )


def _csv(step: ParseStep, text: Column, place: Place | None) -> Parser:
    fields = _fields(step, place)
    ddl = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in fields)
    options = {"columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_csv(text, f"{ddl}, {_CORRUPT} string", options)
    return _by_struct(parsed, fields, text, "the CSV wanted")


def _by_struct(parsed: Column, fields: Sequence[StructField], text: Column, what: str) -> Parser:
    found = F.col(_PARSED)
    types = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    columns = {field.name: found[field.name] for field in fields}
    wrong = found.isNull() | found[_CORRUPT].isNotNull()
    return Parser(parsed, columns, [_no_match(wrong, text, f"{what} ({types})")])


def _key_value(step: ParseStep, text: Column, place: Place | None) -> Parser:
    """`a=1 b="x y"`: each column of the schema is looked for by name; one that is not there is null."""
    if step.schema_ is None:
        raise PipelineError("key-value needs `schema`, the keys and their types: user string, took int", place)
    fields = _fields(step, place)
    found = F.col(_PARSED)
    columns, checks = {}, list[Check]()
    for index, field in enumerate(fields):
        type_ = field.dataType.simpleString()
        columns[field.name] = found[index] if type_ == "string" else found[index].try_cast(type_)
        if type_ != "string":
            checks.append(_unreadable(found[index], field.name, type_))
    parsed = F.array(*(_value_of(text, field.name) for field in fields))
    nothing = ~F.exists(found, lambda value: value.isNotNull())
    return Parser(parsed, columns, [_no_match(nothing, text, "text with one of the keys wanted"), *checks])


def _value_of(text: Column, key: str) -> Column:
    pattern = rf'(?:^|[\s,;])\Q{key}\E=(?:"([^"\\]*(?:\\.[^"\\]*)*)"|([^\s,;"]*))'
    in_quotes, bare = F.regexp_extract(text, pattern, 1), F.regexp_extract(text, pattern, 2)
    unescaped = F.regexp_replace(in_quotes, F.lit(r"\\(.)"), F.lit("$1"))
    return F.when(text.rlike(pattern), F.when(bare != "", bare).otherwise(unescaped))


def _fields(step: ParseStep, place: Place | None) -> list[StructField]:
    return list(schema_of(step.schema_ or "", place, "schema").fields)


PARSERS: dict[str, Callable[[ParseStep, Column, Place | None], Parser]] = {
    **dict.fromkeys(FORMATS, _named_format),
    "json": _json,
    "csv": _csv,
    "key-value": _key_value,
}
"""The formats by name; anything else is a regular expression."""

"""JSON Schema: the columns that a document describes, and the checks that types cannot make.

`columns_of` gives Spark's type of the documents: `integer` is bigint, `number` double, an object with `properties` a
struct, one without a map, an array an array; strings with the format `date-time` or `date` are timestamps and dates.
What may be anything stays JSON text. Keywords about values are ignored there.

`violations` turns those keywords into SQL expressions, so that they also work where no Python may run: each is null as
long as its rule holds, and else says which value broke it. A keyword that has no such expression is refused, since a
check that silently does not happen is worse than none. A null counts as if the property were not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

Document = Mapping[str, Any]

_NOT_CHECKED = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "dependencies",
    "dependentRequired", "dependentSchemas", "contains", "minContains", "maxContains", "prefixItems", "additionalItems",
    "unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
)  # fmt: skip
_OF_STRINGS = ("pattern", "minLength", "maxLength", "enum", "const")
_SHOWN = 100
"""How much of a value a message shows."""


class SchemaMistake(Exception):  # noqa: N818 - a mistake in a file, reported by its reader
    """The JSON Schema cannot be used; the message says where and why."""


class _Value(NamedTuple):
    """A value in a document: its JSONPath for people, its column, and its JSON text for what types have lost."""

    path: str
    column: Column
    text: Callable[[], Column]


def columns_of(document: Document) -> StructType:
    """The columns of documents of this schema; SchemaMistake if they are not objects with named properties."""
    found = _Reader(document).type_of(document, "$")
    if not isinstance(found, StructType):
        raise SchemaMistake("$: a row needs columns: the schema must be of an object with `properties`")
    return found


def violations(document: Document, parsed: Column, text: Column) -> list[Column]:
    """Messages, each null if its rule holds, for a document that was parsed into the columns of the schema."""
    return list(_Reader(document).checks(document, _Value("$", parsed, lambda: text)))


class _Reader:
    """Walks one document; `$ref` into the same document is followed."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def type_of(self, node: Any, path: str, seen: tuple[str, ...] = ()) -> DataType:
        node, seen = self._resolve(node, path, seen)
        match _kind(node, path):
            case "object" if node.get("properties"):
                fields = node["properties"].items()
                return StructType([StructField(name, self.type_of(n, f"{path}.{name}", seen)) for name, n in fields])
            case "object":
                more = node.get("additionalProperties")
                return MapType(StringType(), self.type_of(more if isinstance(more, Mapping) else {}, f"{path}.*", seen))
            case "array":
                return ArrayType(self.type_of(node.get("items", {}), f"{path}[*]", seen))
            case "integer":
                return LongType()
            case "number":
                return DoubleType()
            case "boolean":
                return BooleanType()
            case "string" if not any(keyword in node for keyword in _OF_STRINGS):
                if node.get("contentEncoding") == "base64":
                    return BinaryType()
                return {"date-time": TimestampType(), "date": DateType()}.get(node.get("format", ""), StringType())
        return StringType()

    def checks(self, node: Any, value: _Value, seen: tuple[str, ...] = ()) -> Iterator[Column]:
        node, seen = self._resolve(node, value.path, seen)
        for keyword in _NOT_CHECKED:
            if keyword in node:
                raise SchemaMistake(
                    f"{value.path}: `{keyword}` cannot be checked here; with `value: json` the same file gives the "
                    "columns only, without checks"
                )
        kind = _kind(node, value.path)
        yield from _checks_of_value(node, value, kind)
        if kind == "object" and node.get("properties"):
            yield from self._checks_of_object(node, value, seen)
        elif kind == "object" and isinstance(node.get("additionalProperties"), Mapping):
            values = F.map_values(value.column)
            each = _Value(
                f"{value.path}.*", values, lambda: F.map_values(F.from_json(value.text(), "map<string, string>"))
            )
            yield from self._checks_of_each(node["additionalProperties"], each, seen)
        elif kind == "array":
            each = _Value(f"{value.path}[*]", value.column, lambda: F.from_json(value.text(), "array<string>"))
            yield from self._checks_of_each(node.get("items", {}), each, seen)

    def _checks_of_object(self, node: Document, value: _Value, seen: tuple[str, ...]) -> Iterator[Column]:
        there = value.column.isNotNull()
        required = node.get("required", ())
        for name, part in node["properties"].items():
            place = _Value(f"{value.path}.{name}", value.column[name], _text_of_property(value, name))
            if name in required:
                missing = place.column.isNull()
                if _may_be_null(self._resolve(part, place.path, seen)[0]):
                    missing = missing & ~F.array_contains(F.json_object_keys(value.text()), F.lit(name))
                yield F.when(there & missing, F.lit(f"{place.path} is missing"))
            yield from self.checks(part, place, seen)
        for name in required:
            if name not in node["properties"]:
                known = F.array_contains(F.json_object_keys(value.text()), F.lit(name))
                yield F.when(there & ~known, F.lit(f"{value.path}.{name} is missing"))
        if node.get("additionalProperties") is False:
            unknown = F.array_except(F.json_object_keys(value.text()), F.array(*map(F.lit, node["properties"])))
            text = F.concat(F.lit(f"{value.path} must not have "), F.concat_ws(", ", unknown))
            yield F.when(there & (F.size(unknown) > 0), text)

    def _checks_of_each(self, node: Any, values: _Value, seen: tuple[str, ...]) -> Iterator[Column]:
        """The rules for the items of an array; the first item that breaks one tells."""
        asked = False

        def text() -> Column:
            nonlocal asked
            asked = True
            return F.lit("")

        if not list(self.checks(node, _Value(values.path, F.lit(None), text), seen)):
            return

        def message(item: Column, text: Column) -> Column:
            return F.coalesce(*self.checks(node, _Value(values.path, item, lambda: text), seen))

        # The items' JSON text costs a second parse, so it is made only where a rule reads it.
        if asked:
            messages = F.zip_with(values.column, values.text(), message)
        else:
            messages = F.transform(values.column, lambda item: message(item, F.lit("")))
        yield F.get(F.filter(messages, lambda text: text.isNotNull()), F.lit(0))

    def _resolve(self, node: Any, path: str, seen: tuple[str, ...]) -> tuple[Document, tuple[str, ...]]:
        """Follows `$ref`, and takes `anyOf: [X, null]` for an X that may be null."""
        if node is True:
            return {}, seen
        if not isinstance(node, Mapping):
            raise SchemaMistake(f"{path}: {node!r} is not a schema")
        if "$ref" in node:
            reference = str(node["$ref"])
            if reference in seen:
                raise SchemaMistake(f"{path}: `$ref: {reference}` contains itself, and columns cannot")
            return self._resolve({**self._find(reference, path), **_without(node, "$ref")}, path, (*seen, reference))
        for keyword in ("anyOf", "oneOf"):
            choices = [choice for choice in node.get(keyword, ()) if choice != {"type": "null"}]
            if len(choices) == 1 and len(node[keyword]) == 2:
                found, seen = self._resolve(choices[0], path, seen)
                kinds = found.get("type", ())
                nullable = {"type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]} if kinds else {}
                return {**found, **nullable, **_without(node, keyword)}, seen
        return node, seen

    def _find(self, reference: str, path: str) -> Document:
        found: Any = self._document
        if reference != "#" and not reference.startswith("#/"):
            raise SchemaMistake(f"{path}: `$ref: {reference}` leads out of the file")
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or step not in found:
                raise SchemaMistake(f"{path}: `$ref: {reference}` leads nowhere")
            found = found[step]
        return {} if found is True else dict(found)


def _kind(node: Document, path: str) -> str | None:
    """The one type that a value has beside null; None if it may have several."""
    given = node.get("type")
    kinds = {given} if isinstance(given, str) else set(given or ()) - {"null"}
    if not kinds:
        values = node.get("enum") or ([node["const"]] if "const" in node else [])
        kinds = {_KIND_OF.get(type(value), "") for value in values if value is not None}
        kinds |= {"object"} if "properties" in node else {"array"} if "items" in node else set()
    if kinds == {"integer", "number"}:
        return "number"
    if not kinds <= {"object", "array", "integer", "number", "boolean", "string", "null"}:
        raise SchemaMistake(f"{path}: `type: {given}` is not one of JSON Schema's")
    return next(iter(kinds)) if len(kinds) == 1 else None


_KIND_OF = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def _may_be_null(node: Document) -> bool:
    kinds = node.get("type")
    return kinds is None or kinds == "null" or (isinstance(kinds, list) and "null" in kinds)


def _without(node: Document, keyword: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != keyword}


def _text_of_property(value: _Value, name: str) -> Callable[[], Column]:
    return lambda: F.get_json_object(value.text(), f"$['{name}']")


def _checks_of_value(node: Document, value: _Value, kind: str | None) -> Iterator[Column]:
    """The keywords about one value. One that is about another type says nothing, as JSON Schema has it."""
    for keyword, (kinds, rule) in _RULES.items():
        if keyword not in node:
            continue
        of_struct = kind == "object" and kind in kinds and node.get("properties")
        if kind is None or of_struct or (kinds is _PLAIN and kind not in _PLAIN):
            raise SchemaMistake(
                f"{value.path}: `{keyword}` cannot be checked for values that are not of one plain type"
            )
        if kind in kinds:
            broken, must = rule(value.column, node[keyword])
            shown = F.left(value.column.cast("string"), F.lit(_SHOWN))
            text = F.concat(F.lit(f"{value.path} is "), shown, F.lit(f", {must}"))
            yield F.when(value.column.isNotNull() & broken, text)


def _not_in(column: Column, values: list[Any]) -> tuple[Column, str]:
    return ~column.isin([value for value in values if value is not None]), f"must be one of {json.dumps(values)}"


def _twice(column: Column, unique: bool) -> tuple[Column, str]:
    return F.lit(unique) & (F.size(F.array_distinct(column)) < F.size(column)), "must not have an item twice"


_Rule = Callable[[Column, Any], tuple[Column, str]]
_NUMBERS, _PLAIN = ("integer", "number"), ("integer", "number", "string", "boolean")
_RULES: dict[str, tuple[tuple[str, ...], _Rule]] = {
    "minimum": (_NUMBERS, lambda column, limit: (column < limit, f"must be at least {limit}")),
    "maximum": (_NUMBERS, lambda column, limit: (column > limit, f"must be at most {limit}")),
    "exclusiveMinimum": (_NUMBERS, lambda column, limit: (column <= limit, f"must be more than {limit}")),
    "exclusiveMaximum": (_NUMBERS, lambda column, limit: (column >= limit, f"must be less than {limit}")),
    "multipleOf": (_NUMBERS, lambda column, step: (column % step != 0, f"must be a multiple of {step}")),
    "minLength": (("string",), lambda column, limit: (F.char_length(column) < limit, f"must be {limit} long or more")),
    "maxLength": (("string",), lambda column, limit: (F.char_length(column) > limit, f"must be {limit} long or less")),
    "pattern": (("string",), lambda column, pattern: (~column.rlike(pattern), f"must match {pattern}")),
    "enum": (_PLAIN, _not_in),
    "const": (_PLAIN, lambda column, value: _not_in(column, [value])),
    "minItems": (("array",), lambda column, limit: (F.size(column) < limit, f"must have {limit} items or more")),
    "maxItems": (("array",), lambda column, limit: (F.size(column) > limit, f"must have {limit} items or fewer")),
    "uniqueItems": (("array",), _twice),
    "minProperties": (("object",), lambda column, limit: (F.size(column) < limit, f"must have {limit} or more")),
    "maxProperties": (("object",), lambda column, limit: (F.size(column) > limit, f"must have {limit} or fewer")),
}
"""Keyword -> the types it is about, and when it is broken and what it asks for."""

"""`--filter`: a small language for choosing records, parsed with Python's own grammar and run by a walk over its tree.

    value.campaignId == 3 and key != null
    headers.trace in ["a", "b"] or matches(value, "error|fatal")
    timestamp >= time("2026-05-01") and partition == 0 and len(value.items) > 2

Names: `key` and `value` (text; a field of theirs reads them as JSON), `headers`, `topic`, `partition`, `offset`,
`timestamp` (ms). What is not there is `null`. Comparing things that cannot be compared is false; a number and a text
that looks like one are compared as numbers. Nothing but what is listed here can be written: no assignments, no calls of
anything else, no attributes of Python objects, so an expression can read a record and nothing more.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from millstream.cluster.answers import nearest
from millstream.cluster.errors import BadInput
from millstream.cluster.positions import parse_time

Filter = Callable[[Mapping[str, Any]], bool]
NAMES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
_CONSTANTS = {"null": None, "true": True, "false": False}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


class _Function(NamedTuple):
    arguments: int
    call: Callable[..., Any]


@lru_cache(maxsize=64)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error


def _time(text: Any) -> int:
    moment = parse_time(text) if isinstance(text, str) else None
    if moment is None:
        raise ValueError(f'{text!r} is not a time; write time("2026-05-01T12:00") or time("15m") for 15 minutes ago')
    return moment


_FUNCTIONS = {
    "contains": _Function(2, lambda text, part: part in text),
    "startswith": _Function(2, lambda text, part: text.startswith(part)),
    "endswith": _Function(2, lambda text, part: text.endswith(part)),
    "matches": _Function(2, lambda text, pattern: _pattern(pattern).search(text) is not None),
    "lower": _Function(1, lambda text: text.lower()),
    "upper": _Function(1, lambda text: text.upper()),
    "len": _Function(1, len),
    "number": _Function(1, lambda text: _number(text)),
    "time": _Function(1, _time),
}
_FAILED = (TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError)
"""What an operation on a value of the wrong kind raises: its result is null."""


def compile_filter(text: str, argument: str = "--filter") -> Filter:
    """The expression as a test of a record (`NAMES` -> values); BadInput points at what cannot be understood."""
    text = " ".join(text.splitlines()).strip()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _wrong(argument, text, *_misunderstood(text, error)) from error
    run = _Compiler(argument, text).compile(tree.body)
    return lambda record: bool(run(record))


class _Compiler:
    """Turns the tree into nested functions once, so that a record costs calls only."""

    def __init__(self, argument: str, text: str) -> None:
        self._argument = argument
        self._text = text

    def compile(self, node: ast.expr) -> Callable[[Mapping[str, Any]], Any]:
        match node:
            case ast.Constant(value=str() | int() | float() | None as value):
                return lambda record: value
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=inner, attr=field):
                get = self.compile(inner)
                return lambda record: field_of(get(record), field)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as field)):
                get = self.compile(inner)
                return lambda record: field_of(get(record), field)
            case ast.Subscript(
                value=inner, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as last))
            ):
                get = self.compile(inner)
                return lambda record: field_of(get(record), -last)
            case ast.BoolOp(op=op, values=values):
                parts = [self.compile(value) for value in values]
                if isinstance(op, ast.And):
                    return lambda record: all(part(record) for part in parts)
                return lambda record: any(part(record) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                get = self.compile(inner)
                return lambda record: not get(record)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                get = self.compile(inner)
                return lambda record: _attempt(operator.neg, get(record))
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _ARITHMETIC:
                return self._arithmetic(left, _ARITHMETIC[type(operation)], right)
            case ast.Compare():
                return self._comparison(node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                items = [self.compile(element) for element in elements]
                return lambda record: [item(record) for item in items]
            case ast.Call():
                return self._call(node)
        raise self._wrong(node, "this cannot be used in a filter")

    def _name(self, node: ast.expr, name: str) -> Callable[[Mapping[str, Any]], Any]:
        if name in _CONSTANTS:
            constant = _CONSTANTS[name]
            return lambda record: constant
        if name in NAMES:
            return lambda record: record[name]
        if name in _FUNCTIONS:
            raise self._wrong(node, f"{name} is a function: write {name}(...)")
        guess = nearest(name, [*NAMES, *_CONSTANTS]) or f'; a text needs quotes: "{name}"'
        raise self._wrong(node, f"there is no {name} in a record, there are {', '.join(NAMES)}{guess}")

    def _arithmetic(
        self, left: ast.expr, operation: Callable[[Any, Any], Any], right: ast.expr
    ) -> Callable[[Mapping[str, Any]], Any]:
        first, second = self.compile(left), self.compile(right)

        def run(record: Mapping[str, Any]) -> Any:
            one, two = _same_kind(first(record), second(record))
            if operation in (operator.mul, operator.mod) and not (_is_number(one) and _is_number(two)):
                return None  # "a" * 10**9 and "%999999999d" % 1 are not arithmetic
            return _attempt(operation, one, two)

        return run

    def _comparison(self, node: ast.Compare) -> Callable[[Mapping[str, Any]], Any]:
        operands = [self.compile(operand) for operand in (node.left, *node.comparators)]
        tests = [self._test(node, op) for op in node.ops]

        def run(record: Mapping[str, Any]) -> bool:
            values = [operand(record) for operand in operands]
            return all(test(values[place], values[place + 1]) for place, test in enumerate(tests))

        return run

    def _test(self, node: ast.expr, op: ast.cmpop) -> Callable[[Any, Any], bool]:
        match op:
            case ast.Eq() | ast.Is():
                return _equal
            case ast.NotEq() | ast.IsNot():
                return lambda one, two: not _equal(one, two)
            case ast.In():
                return _is_in
            case ast.NotIn():
                return lambda one, two: not _is_in(one, two)
        order = _COMPARISONS[type(op)]
        return lambda one, two: bool(_attempt(order, *_same_kind(one, two)))

    def _call(self, node: ast.Call) -> Callable[[Mapping[str, Any]], Any]:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise self._wrong(
                node, f"this is no function of a filter; there are {known}{nearest(name or '', _FUNCTIONS)}"
            )
        function = _FUNCTIONS[name]
        if node.keywords or len(node.args) != function.arguments:
            raise self._wrong(node, f"{name} takes {function.arguments} argument(s)")
        arguments = [self.compile(argument) for argument in node.args]
        self._check_constant(name, node.args[-1])
        return lambda record: _attempt(function.call, *(argument(record) for argument in arguments))

    def _check_constant(self, name: str, node: ast.expr) -> None:
        """A time or a pattern that is written out is checked now, not record by record."""
        if isinstance(node, ast.Constant) and name in ("time", "matches"):
            try:
                (_time if name == "time" else _pattern)(node.value)
            except (ValueError, TypeError) as error:
                raise self._wrong(node, str(error)) from error

    def _wrong(self, node: ast.expr, why: str) -> BadInput:
        before = self._text.encode()[: node.col_offset].decode(errors="ignore")
        return _wrong(self._argument, self._text, len(before), why)


def _wrong(argument: str, text: str, column: int, why: str) -> BadInput:
    return BadInput(f"{argument}: {why}\n  {text}\n  {' ' * min(column, len(text))}^")


def _misunderstood(text: str, error: Exception) -> tuple[int, str]:
    """Where Python's grammar stumbled, and what was probably meant."""
    column = max((getattr(error, "offset", None) or 1) - 1, 0)
    for wrong, right in (("&&", "and"), ("||", "or"), ("===", "==")):
        if wrong in text:
            return text.index(wrong), f"write `{right}` for {wrong}"
    if not text:
        return 0, "the expression is empty"
    if single := re.search(r"(?<![=!<>])=(?!=)", text):
        return single.start(), "write `==` to compare"
    return column, f"this is not an expression ({getattr(error, 'msg', None) or error})"


def field_of(thing: Any, field: str | int) -> Any:
    """A field of a JSON object, or an element of an array; a text is read as JSON first. Null if it is not there."""
    if isinstance(thing, str):
        try:
            thing = json.loads(thing)
        except (ValueError, RecursionError):
            return None
    if isinstance(thing, dict):
        return thing.get(str(field))
    if isinstance(thing, list) and isinstance(field, int) and -len(thing) <= field < len(thing):
        return thing[field]
    return None


def _attempt(operation: Callable[..., Any], *operands: Any) -> Any:
    try:
        return operation(*operands)
    except _FAILED:
        return None


def _number(text: Any) -> int | float:
    if isinstance(text, int | float):
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def _is_number(thing: Any) -> bool:
    return isinstance(thing, int | float) and not isinstance(thing, bool)


def _same_kind(one: Any, two: Any) -> tuple[Any, Any]:
    """A text beside a number becomes a number if it looks like one."""
    if isinstance(one, str) and _is_number(two):
        return _attempt(_number, one), two
    if isinstance(two, str) and _is_number(one):
        return one, _attempt(_number, two)
    return one, two


def _equal(one: Any, two: Any) -> bool:
    one, two = _same_kind(one, two)
    return bool(one == two and isinstance(one, bool) == isinstance(two, bool))


def _is_in(one: Any, two: Any) -> bool:
    if isinstance(two, list):
        return any(_equal(one, element) for element in two)
    return bool(_attempt(operator.contains, two, one))

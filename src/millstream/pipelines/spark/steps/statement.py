"""What a SELECT of a user is made of, as far as that decides how it is run; read with sqlglot, never rewritten by it.

A statement is *plain* if each row of its result comes from one row of `stream`: a single SELECT from `stream`, joined
with static tables at most, without grouping, aggregates, DISTINCT or window functions. Such a statement can take the
hidden columns along: they are put, as text, before its FROM. What sqlglot does not understand is not plain; whether
it is SQL says Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from millstream.pipelines.description.pipeline import STREAM

_DIALECT = "spark"
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_GROUPING = ("with_", "with", "group", "having", "distinct", "qualify")


class EventWindow(NamedTuple):
    """A call of `window` or `session_window` over the event time; durations as they were written."""

    size: str = ""
    slide: str | None = None
    offset: str | None = None
    gap: str | None = None


def with_stream_quoted(sql: str) -> str:
    """The statement with `stream` in quotes: to Spark, `FROM stream WHERE ...` is a stream of the table WHERE."""
    for token in reversed(_tokens(sql)):
        begin, end = int(token.start), int(token.end) + 1
        if sql[begin:end].lower() == STREAM:
            sql = f"{sql[:begin]}`{sql[begin:end]}`{sql[end:]}"
    return sql


def with_columns(sql: str, columns: Collection[str], streaming: Collection[str] = ()) -> str | None:
    """The statement with further columns of `stream` in its result; None if it is not plain.

    `streaming` names the tables that are streams themselves: rows joined out of two streams have no one origin.
    """
    tree = _parsed(sql)
    if not isinstance(tree, exp.Select):
        return None
    stream = _stream_of(tree, streaming)
    if stream is None or _groups(tree):
        return None
    name = stream.alias or stream.name
    if _has_star(tree, name):
        return sql
    position = _from_position(sql)
    if position is None:
        return None
    added = "".join(f", `{name}`.`{column}`" for column in columns)
    return f"{sql[:position].rstrip()}\n{added} {sql[position:]}"


def event_window(sql: str, column: str) -> EventWindow | None:
    """The window over this column that a statement groups by."""
    tokens = _tokens(sql)
    for index, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if name in ("window", "session_window") and tokens[index + 1].token_type == TokenType.L_PAREN:
            first, *others = _arguments(tokens[index + 1 :])
            durations = [_duration(argument) for argument in others]
            if first and first[-1].text.lower() == column.lower() and durations and all(durations):
                if name == "session_window":
                    return EventWindow(gap=durations[0])
                return EventWindow(durations[0], *durations[1:3])
    return None


def keeps_time(sql: str, column: str) -> bool:
    """Whether Spark drops late rows by this column itself: it is grouped by, or is a column of a join or DISTINCT."""
    tree = _parsed(sql)
    if tree is None:
        return False
    group = tree.args.get("group")
    if group is not None:
        return any(_is_column(part, column) for part in group.expressions)
    if any(tree.find_all(exp.AggFunc)):
        return False
    return tree.args.get("distinct") is None or any(
        isinstance(part, exp.Star) or _is_column(part, column) for part in tree.expressions
    )


def _parsed(sql: str) -> exp.Expression | None:
    try:
        tree = sqlglot.parse_one(sql, dialect=_DIALECT)
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Expression) else None


def _tokens(sql: str) -> list[Token]:
    try:
        return list(sqlglot.tokenize(sql, dialect=_DIALECT))
    except SqlglotError:
        return []


def _groups(tree: exp.Select) -> bool:
    if any(tree.args.get(part) for part in _GROUPING):
        return True
    inner = {id(node) for query in tree.find_all(exp.Query) if query is not tree for node in query.walk()}
    return any(id(node) not in inner for node in tree.find_all(exp.AggFunc, exp.Window))


def _stream_of(tree: exp.Select, streaming: Collection[str]) -> exp.Table | None:
    """The one place where the statement reads `stream`, if it is among its own tables and no other stream is."""
    tables = [table for table in tree.find_all(exp.Table) if not table.db]
    if any(table.name.lower() in {name.lower() for name in streaming} for table in tables):
        return None
    found = [table for table in tables if table.name.lower() == STREAM]
    own = [table for table in found if isinstance(table.parent, exp.From | exp.Join) and table.parent.parent is tree]
    return own[0] if len(found) == 1 and own else None


def _has_star(tree: exp.Select, stream: str) -> bool:
    """Whether the hidden columns are in the result already, in `*` or `stream.*`."""
    for part in tree.expressions:
        if isinstance(part, exp.Star):
            return True
        if isinstance(part, exp.Column) and isinstance(part.this, exp.Star) and part.table.lower() == stream.lower():
            return True
    return False


def _is_column(part: exp.Expression, column: str) -> bool:
    found = part.unalias()
    return isinstance(found, exp.Column) and found.name.lower() == column.lower()


def _from_position(sql: str) -> int | None:
    """Where the statement's own FROM begins; None if it comes before SELECT."""
    depth, selected, before = 0, False, None
    for token in _tokens(sql):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth == 0 and kind == TokenType.SELECT:
            selected = True
        elif depth == 0 and kind == TokenType.FROM and before != TokenType.DISTINCT:  # a IS DISTINCT FROM b
            return int(token.start) if selected else None
        before = kind
    return None


def _arguments(tokens: list[Token]) -> Iterator[list[Token]]:
    """The arguments of a call, from its opening bracket on."""
    depth, argument = 0, list[Token]()
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 or (depth == 1 and token.token_type == TokenType.COMMA):
            yield argument
            argument = []
            if depth == 0:
                return
        elif not (depth == 1 and token.token_type == TokenType.L_PAREN and not argument):
            argument.append(token)


def _duration(argument: list[Token]) -> str:
    """`'5 minutes'` or `INTERVAL 5 MINUTES` as a duration; nothing if it is computed."""
    if len(argument) == 1 and argument[0].token_type == TokenType.STRING:
        return argument[0].text
    is_interval = len(argument) == 3 and argument[0].token_type == TokenType.INTERVAL
    return f"{argument[1].text} {argument[2].text}" if is_interval else ""


def equal_columns(condition: str, one: str, other: str) -> tuple[str, ...]:
    """The columns that a condition makes equal and that have one name on both sides: `stream.id = users.id`."""
    tree = _parsed(condition)
    if tree is None:
        return ()
    found = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        left, right = part.args.get("this"), part.args.get("expression")
        if isinstance(part.unnest(), exp.EQ) and isinstance(left, exp.Column) and isinstance(right, exp.Column):
            sides = {left.table.lower(), right.table.lower()}
            if sides == {one.lower(), other.lower()} and left.name.lower() == right.name.lower():
                found.append(left.name)
    return tuple(found)

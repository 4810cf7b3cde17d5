"""Java's properties syntax: what a server.properties file is written in.

A line is `name=value`, `name: value` or `name value`; `#` and `!` start a comment line; a backslash at the end of a
line joins the next one to it, whose leading spaces do not count; `\\t \\n \\r \\f \\uXXXX` are escapes and any other
escaped character stands for itself. A name that is given twice has its last value, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_BLANK: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    name: str
    value: str
    line: int
    """Where it starts, counted from one."""


class MalformedProperties(ValueError):  # noqa: N818 - it is the file that is malformed
    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def read_properties(text: str) -> Iterator[Property]:
    """The properties of a file in order; MalformedProperties for a broken \\u escape, all else is legal."""
    for line, logical in _logical_lines(text):
        end = 0
        while end < len(logical) and logical[end] not in "=:" + _BLANK:
            end += 2 if logical[end] == "\\" else 1
        rest = logical[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        try:
            yield Property(_unescape(logical[:end]), _unescape(rest), line)
        except ValueError as error:
            raise MalformedProperties(line, "a \\u escape is not followed by four hexadecimal digits") from error


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank ones, joined where a backslash says so, with the number of their first line."""
    start, joined = 0, ""
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(_BLANK)
        if not joined:
            start = number
            if not line or line[0] in "#!":
                continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if continues else line
        if not continues:
            if joined:
                yield start, joined
            joined = ""
    if joined:
        yield start, joined


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\":
            parts.append(char)
        elif position < len(text):
            escaped = text[position]
            position += 1
            if escaped == "u":
                digits = text[position : position + 4]
                if len(digits) < 4 or not digits.isalnum():
                    raise ValueError(digits)
                parts.append(chr(int(digits, 16)))
                position += 4
            else:
                parts.append(_ESCAPES.get(escaped, escaped))
    return "".join(parts)

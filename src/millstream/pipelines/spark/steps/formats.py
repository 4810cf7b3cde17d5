"""The text formats that `parse` knows by name and reads with one regular expression each. A new one is a new entry.

A format is an expression with named groups, the columns that come out of them, and what stands for "nothing there".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F


class TextColumn(NamedTuple):
    """A column of a format: its type, the group it comes from (default: of its name), and how it is read."""

    name: str
    type: str = "string"
    group: str = ""
    read: Callable[[Column], Column] | None = None
    """The value of a text, null if it cannot be read; default: a cast."""


class TextFormat(NamedTuple):
    """A format that one regular expression takes apart."""

    pattern: str
    columns: tuple[TextColumn, ...]
    nothing: tuple[str, ...]
    """What a field says when there is nothing in it."""


_QUOTED = r'[^"\\]*(?:\\.[^"\\]*)*'
"""What is between quotation marks, which may be in it after a backslash. Unrolled, for Java recurses over
alternatives."""
_URL = r'[^"\s\\]+(?:\\.[^"\s\\]*)*'
_COMMON = (
    r"^(?<ip>\S+) (?<ident>\S+) (?<user>\S+) \[(?<time>[^\]]+)\] "
    rf'"(?:(?<method>[A-Z]+) (?<request_url>{_URL})(?: (?<protocol_type>[^"\s\\]+))?|{_QUOTED})" '
    r"(?<status_code>\d{3}) (?<bytes>\d+|-)"
)


def _moment(text: Column) -> Column:
    return F.try_to_timestamp(text, F.lit("dd/MMM/yyyy:HH:mm:ss Z"))


def _day(text: Column) -> Column:
    """The date as the server wrote it, whatever the session's time zone."""
    return F.try_to_date(F.left(text, F.lit(11)), "dd/MMM/yyyy")


_COMMON_COLUMNS = (
    TextColumn("ip"),
    TextColumn("ident"),
    TextColumn("user"),
    TextColumn("time", "timestamp", read=_moment),
    TextColumn("date", "date", "time", _day),
    TextColumn("method"),
    TextColumn("request_url"),
    TextColumn("protocol_type"),
    TextColumn("status_code", "int"),
    TextColumn("bytes", "bigint"),
)

FORMATS: dict[str, TextFormat] = {
    "apache-access-log": TextFormat(rf"{_COMMON}(?: .*)?$", _COMMON_COLUMNS, nothing=("-", "")),
    "apache-combined-log": TextFormat(
        rf'{_COMMON} "(?<referrer>{_QUOTED})" "(?<agent>{_QUOTED})"(?: .*)?$',
        (*_COMMON_COLUMNS, TextColumn("referrer"), TextColumn("agent")),
        nothing=("-", ""),
    ),
}
"""Name -> format."""

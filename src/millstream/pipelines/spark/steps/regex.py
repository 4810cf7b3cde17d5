"""Regular expressions with named groups, as Java has them, and what Java does not allow but everybody writes.

Java's group names are letters and digits only, while columns like to have `_`; and Python writes `(?P<name>…)`.
Spark's functions want numbers in any case. So names are taken out and kept beside the expression, and `\\k<name>`
becomes a number.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"\?P?<([A-Za-z][A-Za-z0-9_]*)>")
_REFERENCE = re.compile(r"\\k<([A-Za-z][A-Za-z0-9_]*)>")


class Groups(NamedTuple):
    """An expression without names, and the named groups' numbers in their order."""

    pattern: str
    numbers: dict[str, int]


def named_groups(expression: str) -> Groups:
    """Takes the names out of an expression; ValueError if one is there twice."""
    out: list[str] = []
    numbers: dict[str, int] = {}
    position, count, brackets = 0, 0, 0
    while position < len(expression):
        rest = expression[position:]
        taken = rest[0]
        if rest.startswith("\\Q"):  # quoted up to \E, or to the end
            end = rest.find("\\E")
            taken = rest if end < 0 else rest[: end + 2]
        elif taken == "\\":
            reference = _REFERENCE.match(rest)
            taken = reference[0] if reference else rest[:2]
        elif taken == "[":
            brackets += 1
            # a bracket that closes at once is meant as itself: []] and [^]]
            opening = re.match(r"\[\^?\]?", rest)
            taken = opening[0] if opening and brackets == 1 else taken
        elif taken == "]" and brackets:
            brackets -= 1
        elif taken == "(" and not brackets:
            name = _NAME.match(rest, 1)
            if name:
                count += 1
                if name[1] in numbers:
                    raise ValueError(f"two groups are called {name[1]}")
                numbers[name[1]] = count
                position += len(name[0])
            elif not rest.startswith("(?"):
                count += 1
        out.append(taken)
        position += len(taken)
    return Groups(_REFERENCE.sub(lambda found: _number(found[1], numbers), "".join(out)), numbers)


def _number(name: str, numbers: dict[str, int]) -> str:
    if name not in numbers:
        raise ValueError(f"\\k<{name}> names no group")
    return f"(?:\\{numbers[name]})"

"""Lengths of time as people write them: `500ms`, `30s`, `5 minutes`, `1h30m`, or a number of seconds."""

from __future__ import annotations

import math
import re
from typing import Any

_MILLISECONDS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def parse_span(value: Any) -> float:
    """Seconds; ValueError says what a length of time looks like."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    text = str(value)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)  # a number that came as text, out of the environment
    milliseconds, position = 0.0, 0
    for match in _PART.finditer(text):
        if match.start() != position or match[2].lower() not in _MILLISECONDS:
            break
        milliseconds += float(match[1]) * _MILLISECONDS[match[2].lower()]
        position = match.end()
    if not text.strip() or position != len(text):
        raise ValueError(f"{text!r} is not a length of time: write 500ms, 30s, 5 minutes or 1h30m")
    return milliseconds / 1000


def span_text(seconds: float) -> str:
    """As Spark reads it: whole milliseconds."""
    return f"{round(seconds * 1000)} milliseconds"


def short_span(seconds: float) -> str:
    """As people write it, `1h30m`, to the millisecond."""
    left, text = round(seconds * 1000), ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _MILLISECONDS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"

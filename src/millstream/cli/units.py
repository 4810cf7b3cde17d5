"""Sizes, times and numbers as people read and write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from millstream.cluster.errors import BadInput

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def count_text(count: int, one: str, many: str = "") -> str:
    """`1 file`, `3 files`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def size_text(size: int | None) -> str | None:
    """`1.5 MiB`; None stays None."""
    if size is None:
        return None
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def duration_text(milliseconds: int | None) -> str | None:
    """The two greatest units: `3h 12m`, `12m 5s`, `1.2s`; None stays None."""
    if milliseconds is None:
        return None
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{milliseconds / 1000:.1f}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60}s"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600}h"


def parse_duration(text: str, option: str) -> int:
    """`90s`, `15m`, `2h`, `500ms` in milliseconds; BadInput names the option."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{option}: {text!r} is not a time span; write 500ms, 90s, 15m, 2h or 1d")
    return round(float(match[1]) * _MILLISECONDS[match[2]])


def time_text(milliseconds: int | None) -> str | None:
    """A timestamp in UTC to the millisecond; None stays None, and one that no calendar has is shown as its number."""
    if milliseconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03d}"

"""Values of stores as texts that Spark casts to the columns' types: one way for all drivers, whatever they make of a
type.

Times without a zone are UTC, as the sessions are in which they are read. Bytes are hexadecimal digits.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

BOOLEAN, BINARY, TIMESTAMP = "boolean", "binary", "timestamp"


def text_of(value: Any, type_: str) -> str | None:
    """A value for a column of this type (as Spark calls it)."""
    if value is None or (isinstance(value, str) and type_ != BINARY):
        return value
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value), type_)
    if isinstance(value, datetime):
        return value.isoformat(" ") + ("+00:00" if type_ == TIMESTAMP and value.tzinfo is None else "")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, timedelta):
        return str(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _bytes(value: bytes, type_: str) -> str:
    if type_ == BINARY:
        return value.hex()
    if type_ == BOOLEAN:  # MySQL's BIT
        return str(int.from_bytes(value, "big"))
    return value.decode("utf-8", "replace")


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")

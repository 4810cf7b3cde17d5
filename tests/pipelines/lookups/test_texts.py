"""Values of stores as texts."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from millstream.pipelines.spark.lookups.texts import text_of


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (None, "int", None),
        ("x", "string", "x"),
        (5, "int", "5"),
        (True, "boolean", "true"),
        (False, "boolean", "false"),
        (1.5, "double", "1.5"),
        (float("nan"), "double", "NaN"),
        (float("-inf"), "double", "-Infinity"),
        (Decimal("1E+3"), "decimal(10,0)", "1000"),
        (b"\x00\xff", "binary", "00ff"),
        ("ab", "binary", "6162"),
        (b"\x01", "boolean", "1"),
        ("Ä".encode(), "string", "Ä"),
        (memoryview(b"x"), "string", "x"),
        (date(2024, 1, 2), "date", "2024-01-02"),
        (datetime(2024, 1, 2, 3, 4, 5, 6), "timestamp", "2024-01-02 03:04:05.000006+00:00"),
        (datetime(2024, 1, 2, 3), "timestamp_ntz", "2024-01-02 03:00:00"),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), "timestamp", "2024-01-02 03:00:00+00:00"),
        (timedelta(hours=1), "string", "1:00:00"),
        ({"a": [1, "ä"]}, "struct<a:array<string>>", '{"a": [1, "ä"]}'),
        ([1, 2], "array<int>", "[1, 2]"),
    ],
)
def test_a_value_is_a_text_that_spark_casts(value: Any, type_: str, text: str | None) -> None:
    assert text_of(value, type_) == text

"""Lengths of time as people write them."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.pipelines.description.spans import parse_span, short_span, span_text


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("30 seconds", 30),
        ("5 minutes", 300),
        ("5 Minutes", 300),
        ("1h30m", 5400),
        ("1 hour 30 min", 5400),
        ("0.5h", 1800),
        ("2 days", 172800),
        ("7", 7),
        ("2.5", 2.5),
        (0, 0),
        (1.5, 1.5),
    ],
)
def test_what_can_be_written(written: Any, seconds: float) -> None:
    assert parse_span(written) == seconds


@pytest.mark.parametrize(
    "written", ["", " ", "soon", "5 parsecs", "s", "5s and more", "-5s", -1, True, math.inf, math.nan, None, [5], "1e3"]
)
def test_what_is_none(written: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a length of time: write 500ms, 30s, 5 minutes or 1h30m"):
        parse_span(written)


def test_for_spark_in_milliseconds() -> None:
    assert span_text(0.0015) == "2 milliseconds"
    assert span_text(600.0) == "600000 milliseconds"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.25, "250ms"), (90, "1m30s"), (5400, "1h30m"), (86401, "1d1s")]
)
def test_short_for_people(seconds: float, text: str) -> None:
    assert short_span(seconds) == text


@settings(deadline=None)
@given(st.integers(0, 10**11))
def test_short_texts_mean_the_same(milliseconds: int) -> None:
    assert parse_span(short_span(milliseconds / 1000)) == milliseconds / 1000

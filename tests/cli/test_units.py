"""Sizes, spans and times in words."""

import pytest

from millstream.cli.units import count_text, duration_text, parse_duration, size_text, time_text
from millstream.cluster.errors import BadInput


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (7 << 30, "7.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0.0s"), (1250, "1.2s"), (61_000, "1m 1s"), (3_720_000, "1h 2m"), (90_000_000, "1d 1h")],
)
def test_spans(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("90s", 90_000), ("1.5m", 90_000), ("2h", 7_200_000), (" 1d ", 86_400_000)],
)
def test_spans_are_read(text: str, milliseconds: int) -> None:
    assert parse_duration(text, "--older-than") == milliseconds


@pytest.mark.parametrize("text", ["", "15", "m", "-5s", "1w", "1 h", "1h30m"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(BadInput, match=r"--older-than.* is not a time span"):
        parse_duration(text, "--older-than")


def test_times() -> None:
    assert time_text(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert time_text(1 << 62) == str(1 << 62)


def test_nothing_stays_nothing() -> None:
    assert (size_text(None), duration_text(None), time_text(None)) == (None, None, None)


def test_counts() -> None:
    assert [count_text(1, "file"), count_text(2, "file"), count_text(0, "entry", "entries")] == [
        "1 file",
        "2 files",
        "0 entries",
    ]

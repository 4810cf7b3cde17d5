"""Places in a topic as people write them."""

import time

import pytest

from millstream.cluster.errors import BadInput
from millstream.cluster.positions import Position, parse_position, time_text


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", Position("beginning")),
        ("Earliest", Position("beginning")),
        ("end", Position("end")),
        ("latest", Position("end")),
        ("all", Position("end")),
        ("0", Position("offset", 0)),
        ("999999999999", Position("offset", 999999999999)),
        ("1000000000000", Position("time", 1000000000000)),
        ("@5", Position("time", 5)),
        ("-1", Position("last", 1)),
        ("-20", Position("last", 20)),
        ("2026-05-01", Position("time", 1777593600000)),
        ("2026-05-01T12:00", Position("time", 1777636800000)),
        ("2026-05-01 12:00:00.250", Position("time", 1777636800250)),
        ("2026-05-01T14:00+02:00", Position("time", 1777636800000)),
        ("2026-05-01T12:00:00Z", Position("time", 1777636800000)),
    ],
)
def test_forms(text: str, position: Position) -> None:
    assert parse_position(text, "--from") == position


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7200), ("7d", 604800)])
def test_a_time_ago(text: str, seconds: int) -> None:
    before = int(time.time() * 1000)
    kind, number = parse_position(text, "--from")
    assert kind == "time"
    assert before <= number + seconds * 1000 <= int(time.time() * 1000)


@pytest.mark.parametrize("text", ["", "begin", "1.5", "--5", "+5", "2026-13-01", "5w", "@", "@x", "9" * 19])
def test_anything_else_is_refused_by_the_name_of_the_argument(text: str) -> None:
    with pytest.raises(BadInput, match="--from") as refused:
        parse_position(text, "--from")
    assert repr(text) in str(refused.value)
    assert "beginning" in str(refused.value)


def test_times_as_people_read_them() -> None:
    assert time_text(1777636800007) == "2026-05-01T12:00:00.007Z"
    assert time_text(0) == "1970-01-01T00:00:00.000Z"
    assert time_text(-1) == "-"
    assert time_text(2**62) == f"@{2**62}"

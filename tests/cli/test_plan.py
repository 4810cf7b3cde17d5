"""`millstream plan capacity`."""

import pytest

from support.cli import refused, succeed


def test_the_formulas_are_shown_with_the_numbers_put_in() -> None:
    text = succeed("plan", "capacity", "--throughput", "50MB/s", "--retention", "7d", "--disk", "26TB").stdout
    assert "5 brokers, decided by" in text
    assert "stored x retention x replication" in text
    assert "= 50 MB/s x 604,800 s x 3 = 90.7 TB" in text


@pytest.mark.parametrize("columns", [80, 140])
def test_it_fits_the_terminal(columns: int) -> None:
    arguments = ("--throughput", "9GB/s", "--retention", "4w", "--consumers", "12", "--compression-ratio", "3.5")
    lines = succeed("plan", "capacity", *arguments, columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns


def test_json_has_the_answer_and_every_step() -> None:
    found = succeed("plan", "capacity", "--throughput", "20000/s", "--message-size", "1KB", "--json").json
    assert found["load"]["rate"] == 20_000_000
    assert found["brokers"] == max(found["brokers_for"].values())
    assert [step["name"] for step in found["steps"]][-1] == "disk per broker"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--throughput", "50MBps"), "--throughput: '50MBps' is not a throughput; write bytes such as 50MB/s"),
        (("--throughput", "50MB"), "--throughput: '50MB' is not a throughput"),
        (("--throughput", "0/s"), "--throughput: must be more than 0"),
        (
            ("--throughput", "1/s", "--message-size", "1XB"),
            "--message-size: '1XB' is not a size; write for example 100B",
        ),
        (("--throughput", "1/s", "--retention", "7"), "--retention: '7' is not a time; write for example 30m"),
        (("--throughput", "1/s", "--network", "10"), "--network: '10' is not a network; write for example 1Gbit"),
        (("--throughput", "1/s", "--headroom", "100%"), "--headroom: must be from 0% to less than 100%"),
        (("--throughput", "1/s", "--headroom", "some"), "--headroom: 'some' is not a share"),
        (("--throughput", "1/s", "--compression-ratio", "0.5"), "--compression-ratio: must be 1 or more"),
        (("--throughput", "1/s", "--memory", "4GB"), "--memory: a broker needs more than 8 GiB"),
    ],
)
def test_bad_input_is_named_with_what_would_be_right(arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(2, "plan", "capacity", *arguments)

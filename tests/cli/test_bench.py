"""`millstream bench` where no cluster is needed."""

import pytest

from millstream.cli.bench import describe
from millstream.cluster.bench import Settings, is_loopback
from millstream.cluster.connection import Connection
from support.cli import refused


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1:9092", True),
        ("localhost:1,[::1]:2", True),
        ("10.0.0.1:9092", False),
        ("localhost:1,kafka.example:9092", False),
    ],
)
def test_loopback_by_the_looks_of_the_address(address: str, here: bool) -> None:
    assert is_loopback(Connection(address)) is here


def test_what_will_happen_is_said() -> None:
    sentence = describe(Settings("produce", 1000, 5.0, 100, rate=50.0, clients=2), "h:1")
    assert sentence == (
        "Sends 1,000 records of 100 B within 5 s at 50 records/s with 2 clients (acks=all, compression none) "
        "to a temporary topic at h:1."
    )


def test_nobody_there() -> None:
    assert "no broker answers at 127.0.0.1:1" in refused(3, "bench", "latency", "--bootstrap", "127.0.0.1:1")

"""Listeners as settings write them."""

import pytest

from millstream.broker.configs.listeners import (
    Listener,
    advertised_listeners,
    broker_listeners,
    parse_listener,
    parse_protocol_map,
)
from millstream.broker.configs.settings import Settings


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://127.0.0.1:9092", Listener("PLAINTEXT", "127.0.0.1", 9092)),
        ("plaintext://:0", Listener("PLAINTEXT", "", 0)),
        ("A_B://[::1]:9092", Listener("A_B", "::1", 9092)),
        ("X://some-host.example:65535", Listener("X", "some-host.example", 65535)),
    ],
)
def test_a_listener(text: str, listener: Listener) -> None:
    assert parse_listener(text) == listener


@pytest.mark.parametrize("text", ["", "localhost:9092", "PLAINTEXT://localhost", "PLAINTEXT://a:99999", "://a:1"])
def test_what_is_no_listener(text: str) -> None:
    with pytest.raises(ValueError, match="NAME://host:port"):
        parse_listener(text)


def test_the_controllers_listeners_are_left_out() -> None:
    settings = Settings({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"})
    assert broker_listeners(settings) == [Listener("PLAINTEXT", "", 9092)]


def test_advertised_listeners_by_name() -> None:
    settings = Settings({"advertised.listeners": "PLAINTEXT://here:1"})
    assert advertised_listeners(settings) == {"PLAINTEXT": ("here", 1)}


def test_security_protocols_by_name() -> None:
    assert parse_protocol_map("a:ssl, B:PLAINTEXT") == {"A": "SSL", "B": "PLAINTEXT"}
    with pytest.raises(ValueError, match="security protocol"):
        parse_protocol_map("A")

"""Who is paced, with the system's own congestion control in the part of the one that paces."""

import socket
from collections.abc import Iterator

import pytest

from millstream.server import pacing

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux can choose")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def _control_of(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def _accepted(listener: socket.socket) -> socket.socket:
    with socket.create_connection(listener.getsockname()):
        return listener.accept()[0]


def test_what_does_not_pace_stays(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _control_of(listener)
    monkeypatch.setattr(pacing, "_PACED", b"another")
    assert pacing.take_away(listener) is None
    assert _control_of(listener) == before


def test_connections_begin_without_and_can_have_it_back(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _control_of(listener)
    monkeypatch.setattr(pacing, "_PACED", before)
    assert pacing.take_away(listener) == before
    with _accepted(listener) as connection:
        assert _control_of(connection) == b"reno"
        pacing.give_back(connection, before)
        assert _control_of(connection) == before


def test_where_nothing_else_is_allowed_it_stays(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _control_of(listener)
    monkeypatch.setattr(pacing, "_PACED", before)
    monkeypatch.setattr(pacing, "_NOT_PACED", b"not-there")
    assert pacing.take_away(listener) is None
    assert _control_of(listener) == before

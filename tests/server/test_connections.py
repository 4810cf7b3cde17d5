"""Limits on connections: how many, from where, how long they may be idle; and where clients are told to go."""

import socket
import struct
import threading

import pytest
from confluent_kafka.admin import AdminClient

from millstream.testing import TestServer, running_server

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def connect(server: TestServer) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=20)


def answers(peer: socket.socket) -> bool:
    """Whether the server still talks to this peer."""
    try:
        peer.sendall(API_VERSIONS_V0)
        head = peer.recv(4)
        if not head:
            return False
        size = struct.unpack(">i", head)[0]
        while size > 0:
            size -= len(peer.recv(size))
    except (ConnectionResetError, BrokenPipeError):
        return False
    return True


@pytest.mark.parametrize(
    "settings",
    [
        {"max.connections": "2"},
        {"max.connections.per.ip": "2"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:2"},
    ],
    ids=str,
)
def test_a_connection_over_the_limit_is_closed_and_the_others_go_on(settings: dict[str, str]) -> None:
    with running_server(settings) as server, connect(server) as first, connect(server) as second:
        assert answers(first)
        assert answers(second)
        with connect(server) as third:
            assert not answers(third)
        assert answers(first)
        second.close()
        while True:  # the server learns of the closed connection in its own time
            with connect(server) as fourth:
                if answers(fourth):
                    break
        assert answers(first)


def test_an_override_counts_for_its_address_only() -> None:
    settings = {"max.connections.per.ip": "5", "max.connections.per.ip.overrides": "192.0.2.7:0"}
    with running_server(settings) as server, connect(server) as peer:
        assert answers(peer)


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.server.server.IDLE_SWEEP_SECONDS", 0.05)
    with running_server({"connections.max.idle.ms": "200"}) as server, connect(server) as peer:
        assert answers(peer)
        assert peer.recv(1) == b""


def test_half_a_frame_does_not_keep_a_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.server.server.IDLE_SWEEP_SECONDS", 0.05)
    with running_server({"connections.max.idle.ms": "200"}) as server, connect(server) as peer:
        peer.sendall(API_VERSIONS_V0[:7])
        assert peer.recv(1) == b""


def test_clients_are_told_the_advertised_address() -> None:
    with running_server({"advertised.listeners": "PLAINTEXT://log.example.com:1234"}) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
        (broker,) = admin.list_topics(timeout=20).brokers.values()
        assert f"{broker.host}:{broker.port}" == "log.example.com:1234"


def test_a_server_on_all_addresses_tells_a_client_the_one_it_came_to() -> None:
    with running_server({"listeners": "PLAINTEXT://0.0.0.0:0"}) as server:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.2:{server.port}"})
        (broker,) = admin.list_topics(timeout=20).brokers.values()
        assert f"{broker.host}:{broker.port}" == f"127.0.0.2:{server.port}"


def test_two_listeners_with_addresses_of_their_own() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.2:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "advertised.listeners": "INSIDE://inside.example.com:1,OUTSIDE://outside.example.com:2",
        "inter.broker.listener.name": "INSIDE",
    }
    with running_server(settings) as server:
        told = []
        for host, port in server.addresses.values():
            admin = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
            (broker,) = admin.list_topics(timeout=20).brokers.values()
            told.append(f"{broker.host}:{broker.port}")
        assert told == ["inside.example.com:1", "outside.example.com:2"]


def test_a_peer_that_ends_its_side_still_gets_its_answer_and_then_the_end() -> None:
    fetch_that_waits = struct.pack(">hhih", 1, 4, 7, -1) + struct.pack(">iiiib", -1, 300, 1, 1000, 0)
    fetch_that_waits += struct.pack(">ih", 1, 5) + b"waits" + struct.pack(">iiqi", 1, 0, 0, 1000)
    with running_server() as server:
        AdminClient({"bootstrap.servers": server.bootstrap_servers}).list_topics("waits", timeout=20)
        with connect(server) as peer:
            peer.sendall(struct.pack(">i", len(fetch_that_waits)) + fetch_that_waits)
            peer.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := peer.recv(4096):
                answer += chunk
    assert struct.unpack(">ii", answer[:8]) == (len(answer) - 4, 7)


def test_a_peer_that_reads_slowly_gets_everything_in_order() -> None:
    """More than its socket takes: what is written at once and what follows later must not change places."""
    count = 20_000
    requests = b"".join(struct.pack(">ihhih", 10, 18, 0, number, -1) for number in range(count))
    with running_server() as server, socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(20)
        peer.connect((server.host, server.port))
        sender = threading.Thread(target=peer.sendall, args=(requests,))
        sender.start()
        received = peer.makefile("rb")
        for number in range(count):
            size, correlation_id = struct.unpack(">ii", received.read(8))
            assert correlation_id == number
            assert len(received.read(size - 4)) == size - 4
        sender.join()

"""Peers that send nonsense, half a frame, too much, or never read: they are dropped, and nobody else notices."""

import random
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.broker.apis import load_all
from millstream.broker.apis.registry import APIS
from millstream.testing import TestServer, running_server

load_all()
SMALL_LIMITS = {"socket.request.max.bytes": "2000000", "queued.max.request.bytes": "4000000"}


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with running_server(SMALL_LIMITS) as running:
        yield running


def connect(server: TestServer) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=10)


def is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def request(api_key: int, version: int, body: bytes = b"") -> bytes:
    payload = struct.pack(">hhih", api_key, version, 7, -1) + body
    return struct.pack(">i", len(payload)) + payload


def answers(server: TestServer) -> bool:
    """Whether a well-behaved peer gets its answer."""
    with connect(server) as peer:
        peer.sendall(request(18, 0))
        return len(peer.recv(4)) == 4


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", -(2**31)),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 2_000_001),
        struct.pack(">i", 0),
        struct.pack(">i", 3) + b"abc",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        request(9999, 0),
        request(-1, 0),
        request(3, 99),
        request(3, -1),
        request(0, 0),
        request(1, 12, b"\xff" * 50),
        request(3, 1, struct.pack(">i", 2**31 - 1)),
        struct.pack(">ihhih", 10, 3, 1, 7, 30000),
    ],
    ids=lambda data: data[:12].hex(),
)
def test_what_cannot_be_answered_ends_the_connection(server: TestServer, data: bytes) -> None:
    with connect(server) as peer:
        peer.sendall(data)
        assert is_closed(peer)
    assert answers(server)


def test_half_a_frame_and_silence_disturbs_nobody(server: TestServer) -> None:
    with connect(server) as first, connect(server) as second:
        first.sendall(struct.pack(">i", 1_000_000) + b"x" * 1000)
        second.sendall(b"\x00\x00")
        assert answers(server)


def test_more_large_frames_than_memory_wait_for_each_other(server: TestServer) -> None:
    """Five frames of 1.5 MB against 4 MB: the later ones are read once the earlier ones are gone."""
    peers = [connect(server) for _ in range(5)]
    try:
        for peer in peers:
            peer.sendall(struct.pack(">i", 1_500_000) + b"\x00" * 100_000)
        assert answers(server)
        for peer in peers:
            peer.close()
        assert answers(server)
        with connect(server) as peer:
            threading.Thread(target=peer.sendall, args=(struct.pack(">i", 1_900_000) + b"\x7f" * 1_900_000,)).start()
            assert is_closed(peer)
    finally:
        for peer in peers:
            peer.close()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=400))
def test_random_bytes(server: TestServer, data: bytes) -> None:
    with connect(server) as peer:
        peer.sendall(struct.pack(">i", len(data)) + data)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass
    assert answers(server)


@pytest.mark.parametrize("api_key", sorted(APIS))
def test_random_bodies_of_real_apis(server: TestServer, api_key: int) -> None:
    """The header is right, the body is not: an error response or a closed connection, never a stuck one."""
    api = APIS[api_key]
    rng = random.Random(api_key)
    for version in {api.min_version, api.max_version}:
        for _ in range(15):
            flexible = api.request.FLEXIBLE[0] <= version <= api.request.FLEXIBLE[1]
            body = (b"\x00" if flexible else b"") + rng.randbytes(rng.randrange(60))
            with connect(server) as peer:
                peer.sendall(request(api_key, version, body))
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
    assert answers(server)


def test_a_peer_that_never_reads_holds_up_nobody(server: TestServer) -> None:
    topic = "never-read"
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "linger.ms": 5})
    for _ in range(300):
        producer.produce(topic, b"x" * 100_000)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap_servers, "group.id": "reads", "auto.offset.reset": "earliest"}
    )
    with connect(server) as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(50):
            mute.sendall(request(1, 4, fetch_v4(topic)))
        consumer.subscribe([topic])
        read = 0
        while read < 300:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            read += 1
    consumer.close()


def fetch_v4(topic: str) -> bytes:
    raw = topic.encode()
    partition = struct.pack(">iiqi", 1, 0, 0, 50_000_000)
    topics = struct.pack(">ih", 1, len(raw)) + raw + partition
    return struct.pack(">iiiib", -1, 100, 1, 50_000_000, 0) + topics

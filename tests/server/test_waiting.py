"""A fetch that waits is answered by the request that brings what it waits for, and by nothing less."""

import asyncio
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from millstream.broker.apis import fetch as fetch_api
from millstream.testing import TestServer, running_server
from millstream.wire.codec import decode, encode
from millstream.wire.message import Message
from millstream.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from millstream.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from millstream.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from support import graduation
from support.batches import batch

PARTITIONS = 3
PRODUCE, FETCH, API_VERSIONS = 8, 11, 0
"""The versions that are spoken here."""
A_LONG_TIME_MS = 60_000
PATIENCE = 20.0


class Peer:
    """Requests and responses, one after the other."""

    def __init__(self, server: TestServer) -> None:
        self.socket = socket.create_connection((server.host, server.port), timeout=PATIENCE)

    def send(self, *requests: tuple[Message, int]) -> None:
        frames = b""
        for request, version in requests:
            body = struct.pack(">hhih", type(request).API_KEY, version, 7, -1) + encode(request, version)
            frames += struct.pack(">i", len(body)) + body
        self.socket.sendall(frames)

    def receive(self) -> bytes:
        """The next response's message; empty when the server has ended the connection."""
        head = self._exactly(4)
        return self._exactly(struct.unpack(">i", head)[0])[4:] if head else b""

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data


@contextmanager
def producer_and_consumer() -> Iterator[tuple[TestServer, Peer, Peer]]:
    with running_server() as server:
        graduation.make_topic(server.bootstrap_servers, "t", partitions=PARTITIONS)
        producer, consumer = Peer(server), Peer(server)
        with producer.socket, consumer.socket:
            yield server, producer, consumer


def fetch(*, min_bytes: int = 1) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(PARTITIONS)
    ]
    return FetchRequest(
        max_wait_ms=A_LONG_TIME_MS, min_bytes=min_bytes, max_bytes=1 << 20, session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=partitions)],
    )  # fmt: skip


def produce(*partitions: int, value: bytes = b"x") -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch([value])) for index in partitions]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def wait_for_watchers(server: TestServer, count: int) -> None:
    """Until so many fetches watch the first partition."""
    deadline = time.monotonic() + PATIENCE
    while (found := watchers(server)) != count:
        assert time.monotonic() < deadline, f"{found} instead of {count}"


def watchers(server: TestServer) -> int:
    async def look() -> int:
        assert server._server is not None
        topic = server._server.broker.topics.get("t")
        assert topic is not None
        return len(topic.partitions[0].log._listeners)

    return asyncio.run_coroutine_threadsafe(look(), server._loop).result(PATIENCE)


def test_the_consumer_has_its_answer_when_the_producer_has_its_own() -> None:
    with producer_and_consumer() as (server, producer, consumer):
        consumer.send((fetch(), FETCH))
        wait_for_watchers(server, 1)
        producer.send((produce(0, 1, 2), PRODUCE))
        written = decode(ProduceResponse, producer.receive(), PRODUCE)
        assert [part.error_code for part in written.responses[0].partition_responses] == [0, 0, 0]
        consumer.socket.setblocking(False)  # it need not wait: the answer has left before the producer's
        response = decode(FetchResponse, consumer.receive(), FETCH)
        assert [part.high_watermark for part in response.responses[0].partitions] == [1, 1, 1]
        assert all(part.records for part in response.responses[0].partitions)
        wait_for_watchers(server, 0)


def test_too_little_is_waited_for() -> None:
    with producer_and_consumer() as (server, producer, consumer):
        consumer.send((fetch(min_bytes=1000), FETCH))
        wait_for_watchers(server, 1)
        producer.send((produce(0), PRODUCE), (produce(1), PRODUCE))
        producer.receive()
        producer.receive()
        assert watchers(server) == 1
        producer.send((produce(2, value=bytes(1000)), PRODUCE))
        producer.receive()
        response = decode(FetchResponse, consumer.receive(), FETCH)
        assert [part.high_watermark for part in response.responses[0].partitions] == [1, 1, 1]


def test_requests_behind_one_that_waits_are_answered_after_it() -> None:
    with producer_and_consumer() as (server, producer, consumer):
        consumer.send((fetch(), FETCH), (ApiVersionsRequest(), API_VERSIONS))
        wait_for_watchers(server, 1)
        producer.send((produce(1), PRODUCE))
        producer.receive()
        response = decode(FetchResponse, consumer.receive(), FETCH)
        assert [part.high_watermark for part in response.responses[0].partitions] == [0, 1, 0]
        assert decode(ApiVersionsResponse, consumer.receive(), API_VERSIONS).api_keys


def test_a_peer_that_goes_waits_no_more() -> None:
    with producer_and_consumer() as (server, _, consumer):
        consumer.send((fetch(), FETCH))
        wait_for_watchers(server, 1)
        consumer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # not only its side
        consumer.socket.close()
        wait_for_watchers(server, 0)


def test_an_answer_that_fails_is_nothing_to_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> FetchResponse:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(fetch_api._Attempt, "answer", fail)
    with producer_and_consumer() as (server, producer, consumer):
        consumer.send((fetch(), FETCH))
        wait_for_watchers(server, 1)
        producer.send((produce(0), PRODUCE))
        written = decode(ProduceResponse, producer.receive(), PRODUCE)
        assert written.responses[0].partition_responses[0].error_code == 0
        assert consumer.receive() == b""

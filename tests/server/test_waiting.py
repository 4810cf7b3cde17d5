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
from millstream.wire.messages.fetch import FetchResponse
from support import graduation
from support.batches import batch
from support.raw import RawClient

PARTITIONS = 3
PRODUCE, FETCH, API_VERSIONS = 8, 11, 0
"""The versions that are spoken here."""
A_LONG_TIME_MS = 60_000
PATIENCE = 20.0


@contextmanager
def producer_and_consumer() -> Iterator[tuple[TestServer, RawClient, RawClient]]:
    with running_server() as server:
        address = server.bootstrap_servers
        graduation.make_topic(address, "t", partitions=PARTITIONS)
        with RawClient(address, timeout=PATIENCE) as producer, RawClient(address, timeout=PATIENCE) as consumer:
            yield server, producer, consumer


def send_fetch(consumer: RawClient, *, min_bytes: int = 1) -> None:
    partitions = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in range(PARTITIONS)
    ]
    consumer.send(
        "fetch", FETCH, replica_id=-1, max_wait=A_LONG_TIME_MS, min_bytes=min_bytes, max_bytes=1 << 20,
        session_epoch=-1, topics=[{"topic": "t", "partitions": partitions}],
    )  # fmt: skip


def send_produce(producer: RawClient, *partitions: int, value: bytes = b"x") -> None:
    data = [{"index": index, "records": batch([value])} for index in partitions]
    producer.send("produce", PRODUCE, acks=1, timeout=1000, topic_data=[{"name": "t", "partition_data": data}])


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
        send_fetch(consumer)
        wait_for_watchers(server, 1)
        send_produce(producer, 0, 1, 2)
        written = producer.receive()
        assert [part.error_code for part in written.responses[0].partition_responses] == [0, 0, 0]
        consumer._socket.setblocking(False)  # it need not wait: the answer has left before the producer's
        response = consumer.receive()
        assert [part.high_watermark for part in response.responses[0].partitions] == [1, 1, 1]
        assert all(part.records for part in response.responses[0].partitions)
        wait_for_watchers(server, 0)


def test_too_little_is_waited_for() -> None:
    with producer_and_consumer() as (server, producer, consumer):
        send_fetch(consumer, min_bytes=1000)
        wait_for_watchers(server, 1)
        send_produce(producer, 0)
        send_produce(producer, 1)
        producer.receive()
        producer.receive()
        assert watchers(server) == 1
        send_produce(producer, 2, value=bytes(1000))
        producer.receive()
        response = consumer.receive()
        assert [part.high_watermark for part in response.responses[0].partitions] == [1, 1, 1]


def test_requests_behind_one_that_waits_are_answered_after_it() -> None:
    with producer_and_consumer() as (server, producer, consumer):
        send_fetch(consumer)
        consumer.send("api_versions", API_VERSIONS)
        wait_for_watchers(server, 1)
        send_produce(producer, 1)
        producer.receive()
        response = consumer.receive()
        assert [part.high_watermark for part in response.responses[0].partitions] == [0, 1, 0]
        assert consumer.receive().api_keys


def test_a_peer_that_goes_waits_no_more() -> None:
    with producer_and_consumer() as (server, _, consumer):
        send_fetch(consumer)
        wait_for_watchers(server, 1)
        reset = struct.pack("ii", 1, 0)  # not only its side
        consumer._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        consumer.close()
        wait_for_watchers(server, 0)


def test_an_answer_that_fails_is_nothing_to_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> FetchResponse:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(fetch_api._Attempt, "answer", fail)
    with producer_and_consumer() as (server, producer, consumer):
        send_fetch(consumer)
        wait_for_watchers(server, 1)
        send_produce(producer, 0)
        written = producer.receive()
        assert written.responses[0].partition_responses[0].error_code == 0
        assert consumer.is_closed_by_peer()

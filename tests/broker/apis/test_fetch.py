"""Fetch: the moment between the first read and the wait, which no client can hit on purpose."""

import asyncio
from typing import Any

from millstream.broker.apis.registry import APIS, Waiting
from millstream.broker.context import RequestContext
from millstream.testing import running_server
from millstream.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support import graduation
from support.batches import batch


def test_an_append_before_the_wait_begins_still_ends_it() -> None:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic="race", partitions=[part])]
    )
    data = TopicProduceData(
        name="race", partition_data=[PartitionProduceData(index=0, records=memoryview(batch([b"x"])))]
    )
    produce = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data])

    with running_server() as server:
        graduation.make_topic(server.bootstrap_servers, "race")
        assert server._server is not None
        broker = server._server.broker

        async def race() -> Any:
            waiting = APIS[1].handler(broker, fetch, _context(12))
            assert isinstance(waiting, Waiting)
            written: Any = APIS[0].handler(broker, produce, _context(9))
            assert written.responses[0].partition_responses[0].error_code == 0
            ready = asyncio.Event()
            waiting.wait(ready.set)
            await asyncio.wait_for(ready.wait(), 10)
            return waiting.answer()

        response = asyncio.run_coroutine_threadsafe(race(), server._loop).result(20)
    assert response.responses[0].partitions[0].high_watermark == 1


def _context(version: int) -> RequestContext:
    return RequestContext(
        api_version=version,
        client_id="test",
        client_host="/127.0.0.1",
        connection_id="1",
        listener="PLAINTEXT",
        local_host="127.0.0.1",
    )

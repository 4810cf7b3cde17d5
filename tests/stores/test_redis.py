"""Redis as a store: a client writes and reads, data outlive a kill, and the process is gone at the end."""

from collections.abc import Iterator
from contextlib import closing

import pytest
import redis

from millstream.stores import Redis
from support.stores import are_gone, running


@pytest.fixture(scope="module")
def store() -> Iterator[Redis]:
    with running(Redis()) as started:
        yield started


def test_written_read_killed_and_read_again(store: Redis) -> None:
    with closing(redis.Redis.from_url(store.url)) as client:
        client.hset("ranges", mapping={"10": "fraud"})
        assert client.hgetall("ranges") == {b"10": b"fraud"}
        pids = store.pids()
        store.kill()
        assert are_gone(pids)
        store.start()
        assert client.hgetall("ranges") == {b"10": b"fraud"}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_stopped_and_gone() -> None:
    with running(Redis()) as store:
        pids, folder = store.pids(), store.folder
        assert store.url == f"redis://127.0.0.1:{store.port}/0"
    assert are_gone(pids)
    assert not folder.exists()

"""Redis as a store: hashes, JSON, and a server that goes away."""

import json
from collections.abc import Iterator

import pytest
import redis as client_library

from millstream.pipelines.spark.lookups.redis import RedisSettings
from millstream.pipelines.spark.lookups.store import StoreAway, Unusable
from millstream.stores import Redis
from support.cluster import unique

Client = client_library.Redis


@pytest.fixture
def client(redis: Redis) -> Iterator[Client]:
    with Client.from_url(redis.url) as connected:
        yield connected


def test_hashes_and_json_are_found_and_others_are_not(redis: Redis, client: Client) -> None:
    prefix = unique("ips")
    client.hset(f"{prefix}:1", mapping={"fraud": "true", "country": "Ä", "raw": b"\xff"})
    client.set(f"{prefix}:2", json.dumps({"fraud": False, "tags": ["x"]}))
    client.set(f"{prefix}:3", "no JSON")
    client.set(f"{prefix}:4", "[1]")
    client.rpush(f"{prefix}:5", "x")
    store = RedisSettings(redis.url, f"{prefix}:", ("fraud", "country")).open()

    assert store.get(["1", "2", "3", "4", "5", "6"]) == {
        "1": {"fraud": "true", "country": "Ä", "raw": b"\xff"},
        "2": {"fraud": False, "tags": ["x"]},
        "3": Unusable("it is a string without a JSON object in it"),
        "4": Unusable("it is a string without a JSON object in it"),
        "5": Unusable("it is neither a hash nor a string"),
    }
    store.close()


def test_a_server_that_goes_is_away_until_it_is_back(redis: Redis, client: Client) -> None:
    prefix = unique("back")
    client.hset(f"{prefix}:1", mapping={"n": "1"})
    store = RedisSettings(redis.url, f"{prefix}:", ("n",)).open()
    assert store.get(["1"]) == {"1": {"n": "1"}}

    redis.kill()
    try:
        with pytest.raises(StoreAway, match=f"^redis://127.0.0.1:{redis.port}/0 does not answer: "):
            store.get(["1"])
    finally:
        redis.start()

    assert store.get(["1"]) == {"1": {"n": "1"}}
    store.close()


def test_a_password_is_not_shown() -> None:
    assert str(RedisSettings("redis://me:secret@host:6379/2", "", ())) == "redis://host:6379/2"

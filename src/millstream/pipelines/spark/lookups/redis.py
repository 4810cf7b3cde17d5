"""Redis as a store: a hash for each key, its fields are the columns; or a string with a JSON object in it.

All keys of a question go in one round trip. A key whose value is a string is found out by the answer to HGETALL, and
asked for again by GET, in a second round trip for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from redis import Redis
from redis.exceptions import BusyLoadingError, ConnectionError, ReadOnlyError, RedisError, ResponseError, TimeoutError

from millstream.pipelines.spark.lookups.store import ANSWER_SECONDS, StoreAway, Unusable

_AWAY = (ConnectionError, TimeoutError, BusyLoadingError, ReadOnlyError, OSError)


class RedisSettings(NamedTuple):
    """A Redis server, what comes before its keys, and the columns wanted."""

    url: str
    prefix: str
    columns: tuple[str, ...]

    def open(self) -> RedisStore:
        return RedisStore(self)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class RedisStore:
    """A Redis server; the client makes a connection when it needs one, and a new one after it was lost."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._client = Redis.from_url(
            settings.url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS
        )

    def get(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any] | Unusable]:
        try:
            hashes = self._all("HGETALL", keys)
            strings = [key for key, answer in hashes.items() if isinstance(answer, ResponseError)]
            texts = self._all("GET", strings) if strings else {}
        except _AWAY as error:
            raise StoreAway(f"{self._settings} does not answer: {error}") from error
        found: dict[str, Mapping[str, Any] | Unusable] = {}
        for key, answer in hashes.items():
            if isinstance(answer, dict) and answer:
                found[key] = _fields(answer)
            elif texts.get(key) is not None:
                found[key] = _object(texts[key])
        return found

    def close(self) -> None:
        self._client.close()

    def _all(self, command: str, keys: Sequence[str]) -> dict[str, Any]:
        """The answers of one round trip. That a key holds another type is an answer; any other error is raised."""
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.execute_command(command, self._settings.prefix + key)  # type: ignore[no-untyped-call]  # redis has no types there
            answers = pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, RedisError) and not str(answer).startswith("WRONGTYPE"):
                raise answer
        return dict(zip(keys, answers, strict=True))


def _object(text: Any) -> Mapping[str, Any] | Unusable:
    if isinstance(text, ResponseError):
        return Unusable("it is neither a hash nor a string")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else Unusable("it is a string without a JSON object in it")


def _fields(found: dict[bytes, bytes]) -> dict[str, Any]:
    return {_text(name): _text(value) for name, value in found.items()}


def _text(value: bytes) -> Any:
    """What Redis holds is bytes; mostly they are a text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value

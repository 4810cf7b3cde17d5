"""What is known of an API in one version before a request comes: how to read it, who answers, how to write the answer.

A request on the wire is api key int16 | version int16 | correlation id int32 | client id, nullable string | tagged
fields in flexible versions | message; a response is correlation id int32 | tagged fields | message. ApiVersions never
has tagged fields in its response's header, and a version of it that we do not speak is answered in version 0, with
what would be right (KIP-511).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from millstream.broker.apis.registry import APIS, Api
from millstream.wire.codec import is_flexible, read_uvarint, reader_for, writer_for
from millstream.wire.message import Message

FETCH_KEY, API_VERSIONS_KEY = 1, 18
REQUEST_HEADER = struct.Struct(">hhih")
_RESPONSE_HEADER = struct.Struct(">ii")
_FLEXIBLE_RESPONSE_HEADER = struct.Struct(">iix")
_MOST_ROUTES = 1024


class BadRequest(Exception):  # noqa: N818 - the request is bad; nothing of ours has failed
    """The peer sent something that cannot be answered; the connection ends."""


class Route:
    """One API in one version."""

    __slots__ = ("_flexible", "_has_files", "_header", "_read", "_request", "_response_version", "handler", "name")

    def __init__(self, api: Api, version: int) -> None:
        supported = api.min_version <= version <= api.max_version
        self.name = api.name
        self.handler = api.handler
        self._request = api.request
        self._read = reader_for(api.request, version) if supported else None
        self._response_version = version if supported else 0
        self._flexible = supported and is_flexible(api.request, version)
        self._has_files = api.key == FETCH_KEY
        flexible_response = self._flexible and api.key != API_VERSIONS_KEY
        self._header = _FLEXIBLE_RESPONSE_HEADER if flexible_response else _RESPONSE_HEADER

    def read(self, frame: memoryview, position: int) -> Message:
        """The message of the request whose client id ends at `position`."""
        read = self._read
        if read is None:
            return self._request()
        size = len(frame)
        if self._flexible:
            if position < size and frame[position] == 0:
                position += 1
            else:
                position = _skip_tags(frame, position)
        # What lies behind the message is ignored, as Kafka does: librdkafka sends bytes too many with Metadata.
        message: Message = read(frame, position, size)[0]
        return message

    def response(self, correlation_id: int, message: Message) -> list[Any]:
        """The response as a frame: length, header and message, one run of bytes but for slices of files."""
        header = self._header
        parts: list[Any] = []
        writer_for(type(message), self._response_version)(message, parts.append)
        parts = _joined(parts) if self._has_files else [b"".join(parts)]
        parts[0] = header.pack(sum(map(len, parts)) + header.size - 4, correlation_id) + parts[0]
        return parts


@lru_cache(_MOST_ROUTES)
def route(key: int, version: int) -> Route:
    """The way of a request. BadRequest if there is none."""
    api = APIS.get(key)
    if api is None:
        raise BadRequest(f"unknown API key {key}")
    if not api.min_version <= version <= api.max_version and key != API_VERSIONS_KEY:
        raise BadRequest(f"{api.name} version {version}; supported: {api.min_version} to {api.max_version}")
    return Route(api, version)


def _joined(parts: list[Any]) -> list[Any]:
    """Slices of files, and between them runs of bytes, each of them one."""
    out: list[Any] = []
    begin = 0
    for index, part in enumerate(parts):
        if type(part) is not bytes:
            out += b"".join(parts[begin:index]), part
            begin = index + 1
    out.append(b"".join(parts[begin:]))
    return out


def _skip_tags(frame: memoryview, position: int) -> int:
    try:
        count, position = read_uvarint(frame, position)
        for _ in range(count):
            _, position = read_uvarint(frame, position)
            size, position = read_uvarint(frame, position)
            position += size
    except IndexError:
        raise BadRequest("the request header is cut short") from None
    if position > len(frame):
        raise BadRequest("a tagged field of the request header is longer than the request")
    return position

"""`GET /metrics` on a port of its own, for Prometheus. Nothing else is answered there.

A scrape is one request and one response, so this is the smallest HTTP that is correct: the request head is read
(bounded in size and time), answered, and the connection closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.server.metrics import render

if TYPE_CHECKING:
    from millstream.server.server import Server

HEAD_LIMIT_BYTES = 8192
HEAD_TIMEOUT_SECONDS = 5
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"


class MetricsEndpoint:
    """The listening socket and its answers."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._listener: asyncio.Server | None = None
        self.address = ""

    async def start(self, host: str, port: int) -> None:
        self._listener = await asyncio.start_server(self._answer, host, port, limit=HEAD_LIMIT_BYTES)
        bound = self._listener.sockets[0].getsockname()
        self.address = f"{bound[0]}:{bound[1]}"

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_TIMEOUT_SECONDS)
            writer.write(self._response(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            pass  # not a scrape; there is nobody to tell
        finally:
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _http("405 Method Not Allowed", b"only GET\n")
        if path != b"/metrics":
            return _http("404 Not Found", b"metrics are at /metrics\n")
        return _http("200 OK", render(self._server), with_body=method == b"GET")


def _http(status: str, body: bytes, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")

"""One client connection: frames in, responses out, one request at a time and in order.

The life of a request: `buffer_updated` -> `_pump` takes a frame -> `_dispatch` reads the header and looks the API up in
the one table -> the handler -> `_respond` -> the transport. A handler that must wait returns an awaitable; until it is
done, and until its response has left for the socket, the connection takes no further request and, once its receive
buffer is full, no further bytes. That is all the flow control there is, and it bounds what a peer can make us hold: one
request, one response, and of a fetch response no more than `SEND_AHEAD_BYTES` read ahead of what the peer has taken.

This is also the exception wall. The peer's mistakes (a frame that is too large, bytes that are not a request, an
unknown API) end the connection with one log line; our own end it with a traceback in the log. Nobody else notices
either.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from millstream.broker.apis.registry import APIS, Api
from millstream.broker.context import RequestContext
from millstream.logs import get_logger
from millstream.server.file_sender import SMALLEST, FileSender
from millstream.server.frames import FrameError, FrameReader
from millstream.wire.codec import MalformedMessage, decode_prefix, encode_parts, is_flexible, read_uvarint
from millstream.wire.message import Message

if TYPE_CHECKING:
    from millstream.server.server import Server

log = get_logger(__name__)

API_VERSIONS_KEY = 18
SEND_AHEAD_BYTES = 1 << 20
SEND_CHUNK_BYTES = 1 << 18
RESPONSES_TOGETHER = 16
"""At most: the first of them waits for the others."""
SOCKET_BUFFERS = {
    "socket.send.buffer.bytes": socket.SO_SNDBUF,
    "socket.receive.buffer.bytes": socket.SO_RCVBUF,
}
Buffer = bytes | bytearray | memoryview
_BYTES = (bytes, bytearray, memoryview)
_HEADER = struct.Struct(">hhih")
_RESPONSE_HEADER = struct.Struct(">ii")
_FLEXIBLE_RESPONSE_HEADER = struct.Struct(">iix")


class BadRequest(Exception):  # noqa: N818 - the request is bad; nothing of ours has failed
    """The peer sent something that cannot be answered; the connection ends."""


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self._broker = server.broker
        self._listener = listener
        self._reader = FrameReader(server.settings.int("socket.request.max.bytes"), server.frame_buffers)
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._reading = True
        self._held_bytes = 0
        self._task: asyncio.Future[Any] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._write_paused = False
        self._files: FileSender | None = None
        self._pumping = False
        self._outbox: list[bytes] = []
        self._ended = False
        self._peer = self._connection_id = self._local_host = ""
        self.client_host = ""
        self.last_active = time.monotonic()

    # --- transport callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's transports are transports in all but their class
        self._transport = transport
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.client_host = f"/{peer[0]}"
        self._peer = f"{peer[0]}:{peer[1]}"
        self._local_host = here[0]
        self._connection_id = f"{here[0]}:{here[1]}-{self._peer}"
        self._set_socket_buffers(transport.get_extra_info("socket"))
        transport.set_write_buffer_limits(high=SEND_AHEAD_BYTES, low=SEND_CHUNK_BYTES)
        refusal = self._server.admit(self)
        if refusal is not None:
            self._close(refusal)
            return
        delay_ms = self._broker.quotas.throttle_connection(peer[0])
        if delay_ms > 0:
            self._busy = True
            self._task = asyncio.ensure_future(self._stay_mute(delay_ms))

    def _set_socket_buffers(self, peer: socket.socket) -> None:
        """The kernel's own choice grows as needed, so the sizes count only where somebody has set them."""
        for name, option in SOCKET_BUFFERS.items():
            if name in self._server.settings.values and self._server.settings.int(name) > 0:
                peer.setsockopt(socket.SOL_SOCKET, option, self._server.settings.int(name))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._files is not None:
            self._files.close()
        self._server.forget(self)
        self._release_memory()
        if self._task is not None:
            self._task.cancel()
        if self._drained is not None and not self._drained.done():
            self._drained.cancel()

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        elif not self._busy:
            self._pump()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.received(nbytes)
        if self._busy or self._write_paused:
            self._read_while_room()
        else:
            self._pump()

    def eof_received(self) -> bool:
        """The peer sends no more; what it has asked for it still gets."""
        self._ended = True
        return self._busy or self._write_paused

    # --- requests ---

    def _pump(self) -> None:
        """Takes requests for as long as nothing is in the way."""
        self.last_active = time.monotonic()
        self._pumping = True
        try:
            while not self._busy and not self._write_paused and self._transport is not None:
                frame = self._reader.next_frame()
                if frame is None:
                    self._claim_memory()
                    break
                self._dispatch(frame)
        except (FrameError, BadRequest, MalformedMessage) as error:
            self._close(str(error))
            return
        except Exception:
            log.exception("request failed", client=self._peer)
            self._close("a request failed")
            return
        finally:
            self._pumping = False
        self._empty_outbox()
        if self._ended and not self._busy and not self._write_paused:
            self.close()
        self._read_while_room()

    def _read_while_room(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        wanted = not self._reader.is_full and self._held_bytes >= 0
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif self._reading and not wanted:
            self._transport.pause_reading()
        self._reading = wanted

    def _claim_memory(self) -> None:
        """Counts a large frame against the server's pool; a negative count means that we wait for room."""
        size = self._reader.large_frame_size
        if size == 0 or self._held_bytes != 0:
            return
        if self._server.request_memory.try_acquire(size):
            self._held_bytes = size
        else:
            self._held_bytes = -size
            self._server.request_memory.wait(size, self._memory_granted)

    def _memory_granted(self) -> None:
        self._held_bytes = -self._held_bytes
        self._read_while_room()

    def _release_memory(self) -> None:
        if self._held_bytes > 0:
            self._reader.give_back()
            self._server.request_memory.release(self._held_bytes)
        elif self._held_bytes < 0:
            self._server.request_memory.forget(self._memory_granted)
        self._held_bytes = 0

    def _dispatch(self, frame: memoryview) -> None:
        started = time.perf_counter()
        api, version, correlation_id, client_id, position = self._read_header(frame)
        if api.key == API_VERSIONS_KEY and not api.min_version <= version <= api.max_version:
            message: Message = api.request()  # answered in version 0 with UNSUPPORTED_VERSION and what would be right
        else:
            # What lies behind the message is ignored, as Kafka does: librdkafka sends bytes too many with Metadata.
            message, _ = decode_prefix(api.request, frame, version, position)
        context = RequestContext(
            api_version=version,
            client_id=client_id,
            client_host=self.client_host,
            connection_id=self._connection_id,
            listener=self._listener,
            local_host=self._local_host,
        )
        result = api.handler(self._broker, message, context)
        size = len(frame)
        if isinstance(result, Message) or result is None:
            self._respond(api, context, correlation_id, result, size, started)
        else:
            self._busy = True
            self._task = asyncio.ensure_future(self._respond_later(api, context, correlation_id, result, size, started))

    def _read_header(self, frame: memoryview) -> tuple[Api, int, int, str, int]:
        if len(frame) < _HEADER.size:
            raise BadRequest(f"a request of {len(frame)} bytes is too short for its header")
        key, version, correlation_id, size = _HEADER.unpack_from(frame)
        api = APIS.get(key)
        if api is None:
            raise BadRequest(f"unknown API key {key}")
        if not api.min_version <= version <= api.max_version and key != API_VERSIONS_KEY:
            raise BadRequest(f"{api.name} version {version}; supported: {api.min_version} to {api.max_version}")
        position = _HEADER.size + max(size, 0)
        if size < -1 or position > len(frame):
            raise BadRequest("the client id is longer than the request")
        client_id = str(frame[_HEADER.size : position], "utf-8", "replace")
        if version <= api.max_version and is_flexible(api.request, version):
            position = _skip_header_tags(frame, position)
        return api, version, correlation_id, client_id, position

    # --- responses ---

    async def _respond_later(
        self,
        api: Api,
        context: RequestContext,
        correlation_id: int,
        result: Awaitable[Message | None],
        size: int,
        started: float,
    ) -> None:
        try:
            response = await result
        except asyncio.CancelledError:
            return
        except Exception:
            log.exception("request failed", api=api.name, client=self._peer)
            self._close("a request failed")
            return
        self._busy = False
        self._task = None
        self._respond(api, context, correlation_id, response, size, started)
        if not self._busy:
            self._pump()

    def _respond(
        self,
        api: Api,
        context: RequestContext,
        correlation_id: int,
        response: Message | None,
        size: int,
        started: float,
    ) -> None:
        if self._held_bytes:
            self._release_memory()
        sent = 0
        if self._transport is None:
            return
        if response is not None:
            self._throttle(context, response, time.perf_counter() - started)
            parts = response_parts(api, context.api_version, correlation_id, response)
            sent = sum(map(len, parts))
            self._send(parts, sent)
        elif context.close:
            self._close("a request without acknowledgement failed")
        self._server.metrics.record(api.name, size, sent, time.perf_counter() - started)
        if context.throttle_ms > 0:
            self._busy = True
            self._task = asyncio.ensure_future(self._stay_mute(context.throttle_ms))

    def _throttle(self, context: RequestContext, response: Message, seconds: float) -> None:
        """Tells the client how long the request quota makes it wait; the handler may have found a longer wait."""
        throttle_ms = self._broker.quotas.throttle_request(context, seconds)
        if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = max(throttle_ms, response.throttle_time_ms)

    def _send(self, parts: list[Any], size: int) -> None:
        """Sends what fits at once; file slices beyond that follow as the peer takes them.

        Small responses to requests that came together leave together: a write to a socket costs as much as the rest of
        a small request.
        """
        assert self._transport is not None
        if size < SMALLEST:
            self._outbox.append(b"".join([part if isinstance(part, _BYTES) else part.read_all() for part in parts]))
            if not self._pumping or len(self._outbox) >= RESPONSES_TOGETHER:
                self._empty_outbox()
            return
        self._empty_outbox()
        if self._is_for_the_kernel(parts):
            self._send_by_kernel(parts)
            return
        ready: list[Buffer] = []
        ahead = 0
        for index, part in enumerate(parts):
            if isinstance(part, _BYTES):
                ready.append(part)
            elif ahead + len(part) <= SEND_AHEAD_BYTES:
                ahead += len(part)
                ready.append(part.read_all())
            else:
                self._transport.writelines(ready)
                self._busy = True
                self._task = asyncio.ensure_future(self._send_slowly(parts[index:]))
                return
        self._transport.writelines(ready)

    def _empty_outbox(self) -> None:
        if self._outbox and self._transport is not None:
            self._transport.write(b"".join(self._outbox))
        self._outbox.clear()

    def _is_for_the_kernel(self, parts: list[Any]) -> bool:
        """Whether it is large, made of files, and the transport has nothing to send before it."""
        size = sum(len(part) for part in parts if not isinstance(part, _BYTES))
        return size >= SMALLEST and self._transport is not None and self._transport.get_write_buffer_size() == 0

    def _send_by_kernel(self, parts: list[Any]) -> None:
        assert self._transport is not None
        if self._files is None:
            peer = self._transport.get_extra_info("socket")
            self._files = FileSender(peer, asyncio.get_running_loop(), self._sent_by_kernel)
        try:
            self._busy = not self._files.send(_joined(parts))
        except OSError as error:
            self._close(f"the response could not be sent: {error}")

    def _sent_by_kernel(self, complete: bool) -> None:
        if complete:
            self._resume_requests()
        else:
            self.abort()

    async def _send_slowly(self, parts: list[Any]) -> None:
        for part in parts:
            if isinstance(part, _BYTES):
                await self._write(part)
                continue
            for position in range(0, len(part), SEND_CHUNK_BYTES):
                await self._write(part.read(position, min(SEND_CHUNK_BYTES, len(part) - position)))
        self._resume_requests()

    async def _write(self, data: Buffer) -> None:
        if self._write_paused:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
            self._drained = None
        if self._transport is not None:
            self._transport.write(data)

    async def _stay_mute(self, throttle_ms: int) -> None:
        await asyncio.sleep(throttle_ms / 1000)
        self._resume_requests()

    def _resume_requests(self) -> None:
        self._busy = False
        self._task = None
        self._pump()

    # --- the end ---

    @property
    def is_idle(self) -> bool:
        """Nothing is asked of us, or the peer does not take what it asked for."""
        return not self._busy or self._write_paused or (self._files is not None and self._files.is_waiting)

    def close_idle(self) -> None:
        self._close("idle for longer than connections.max.idle.ms")

    def close(self) -> None:
        """Ends the connection after what has been written, without a word: the server stops."""
        self._empty_outbox()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self, reason: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._empty_outbox()
            log.info("connection closed", client=self._peer, reason=reason)
            self._transport.close()


def response_parts(api: Api, version: int, correlation_id: int, response: Message) -> list[Any]:
    """The response as a frame: length, header and message. ApiVersions never has a flexible header (KIP-511)."""
    if api.key == API_VERSIONS_KEY:
        version = version if api.min_version <= version <= api.max_version else 0
        flexible = False
    else:
        flexible = is_flexible(api.request, version)
    parts = encode_parts(response, version)
    size = sum(map(len, parts))
    if flexible:
        parts.insert(0, _FLEXIBLE_RESPONSE_HEADER.pack(size + 5, correlation_id))
    else:
        parts.insert(0, _RESPONSE_HEADER.pack(size + 4, correlation_id))
    if len(parts) > 8:
        parts = _joined(parts)
    return parts


def _joined(parts: list[Any]) -> list[Any]:
    """Runs of small byte parts made one, so that the transport handles few objects."""
    out: list[Any] = []
    run: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes) and len(part) < 4096:
            run.append(part)
            continue
        if run:
            out.append(b"".join(run))
            run = []
        out.append(part)
    if run:
        out.append(b"".join(run))
    return out


def _skip_header_tags(frame: memoryview, position: int) -> int:
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

"""One client connection: frames in, responses out, one request at a time and in order.

The life of a request: `buffer_updated` -> `_pump` takes a frame -> `_dispatch` finds its route -> the handler ->
`_respond` -> the socket. A handler that must wait returns an awaitable or a `Waiting`; until it is done, and until its
response has left for the socket, the connection takes no further request and, once its receive buffer is full, no
further bytes. That is all the flow control there is, and it bounds what a peer can make us hold: one request, one
response, and of a fetch response no more than `SEND_AHEAD_BYTES` read ahead of what the peer has taken.

This is also the exception wall. The peer's mistakes (a frame that is too large, bytes that are not a request, an
unknown API) end the connection with one log line; our own end it with a traceback in the log. Nobody else notices
either.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from millstream.broker.apis.registry import Waiting
from millstream.broker.context import RequestContext
from millstream.logs import get_logger
from millstream.server import pacing
from millstream.server.file_sender import BYTES, SMALLEST, FileSender
from millstream.server.frames import FrameError, FrameReader
from millstream.server.routes import REQUEST_HEADER, BadRequest, Route, route
from millstream.wire.codec import MalformedMessage
from millstream.wire.message import Message

if TYPE_CHECKING:
    from millstream.server.server import Server

log = get_logger(__name__)

SEND_AHEAD_BYTES = 1 << 20
SEND_CHUNK_BYTES = 1 << 18
RESPONSES_TOGETHER = 16
"""At most: the first of them waits for the others."""
SOCKET_BUFFERS = {
    "socket.send.buffer.bytes": socket.SO_SNDBUF,
    "socket.receive.buffer.bytes": socket.SO_RCVBUF,
}
Buffer = bytes | bytearray | memoryview


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self._broker = server.broker
        self._context = RequestContext(listener=listener)
        self._reader = FrameReader(server.settings.int("socket.request.max.bytes"), server.frame_buffers)
        self._transport: asyncio.Transport | None = None
        self._socket = -1
        self._busy = False
        self._reading = True
        self._held_bytes = 0
        self._task: asyncio.Future[Any] | None = None
        self._waiting: tuple[Waiting, Route, int, int, float] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._write_paused = False
        self._files: FileSender | None = None
        self._pumping = False
        self._outbox: list[bytes] = []
        self._ended = False
        self._peer = ""
        self.client_host = ""
        self.last_active = time.monotonic()

    # --- transport callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's transports are transports in all but their class
        self._transport = transport
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.client_host = f"/{peer[0]}"
        self._peer = f"{peer[0]}:{peer[1]}"
        self._context.client_host = self.client_host
        self._context.connection_id = f"{here[0]}:{here[1]}-{self._peer}"
        self._context.local_host = here[0]
        peer_socket = transport.get_extra_info("socket")
        self._socket = peer_socket.fileno()
        self._set_socket_buffers(peer_socket)
        if self._server.pacing_taken is not None and peer[0] != here[0]:
            pacing.give_back(peer_socket, self._server.pacing_taken)
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
        if self._waiting is not None:
            self._waiting[0].stop()
            self._waiting = None
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
        self._pumping = self._server.is_handling = True
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
            self._pumping = self._server.is_handling = False
            self._server.answer_waiting()
        self._empty_outbox()
        if self._ended and not self._busy and not self._write_paused:
            self.close()
        if self._busy or self._write_paused or self._held_bytes or not self._reading:
            self._read_while_room()  # otherwise all complete frames were taken, so there is room

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
        size = len(frame)
        if size < REQUEST_HEADER.size:
            raise BadRequest(f"a request of {size} bytes is too short for its header")
        key, version, correlation_id, id_size = REQUEST_HEADER.unpack_from(frame)
        way = route(key, version)
        position = REQUEST_HEADER.size + (id_size if id_size > 0 else 0)
        if id_size < -1 or position > size:
            raise BadRequest("the client id is longer than the request")
        context = self._context
        context.begin(version, str(frame[REQUEST_HEADER.size : position], "utf-8", "replace"))
        result = way.handler(self._broker, way.read(frame, position), context)
        if isinstance(result, Message) or result is None:
            self._server.answer_waiting()  # they wait for the record, our peer only for the word that it is there
            self._respond(way, correlation_id, result, size, started)
        elif isinstance(result, Waiting):
            self._busy = True
            self._waiting = result, way, correlation_id, size, started
            result.wait(self._ready)
        else:
            self._busy = True
            self._task = asyncio.ensure_future(self._respond_later(way, correlation_id, result, size, started))

    # --- responses ---

    async def _respond_later(
        self,
        way: Route,
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
            log.exception("request failed", api=way.name, client=self._peer)
            self._close("a request failed")
            return
        self._busy = False
        self._task = None
        self._respond(way, correlation_id, response, size, started)
        if not self._busy:
            self._pump()

    def _ready(self) -> None:
        self._server.answer_soon(self)

    def answer(self) -> None:
        """The request that waits, in the middle of another connection's: nothing is raised, and no further request
        taken."""
        if self._waiting is None:
            return
        waiting, way, correlation_id, size, started = self._waiting
        self._waiting = None
        self._busy = False
        try:
            self._respond(way, correlation_id, waiting.answer(), size, started)
        except Exception:
            log.exception("request failed", api=way.name, client=self._peer)
            self._close("a request failed")
        if not self._busy and (self._ended or not self._reading or not self._reader.is_empty):
            asyncio.get_running_loop().call_soon(self._pump)

    def _respond(self, way: Route, correlation_id: int, response: Message | None, size: int, started: float) -> None:
        if self._held_bytes:
            self._release_memory()
        if self._transport is None:
            return
        context = self._context
        sent = 0
        if response is not None:
            throttle_ms = self._broker.quotas.throttle_request(context, time.perf_counter() - started)
            if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = max(throttle_ms, response.throttle_time_ms)  # its handler's may be longer
            sent = self._send(way.response(correlation_id, response))
        elif context.close:
            self._close("a request without acknowledgement failed")
        self._server.metrics.record(way.name, size, sent, time.perf_counter() - started)
        if context.throttle_ms > 0:
            self._busy = True
            self._task = asyncio.ensure_future(self._stay_mute(context.throttle_ms))

    def _send(self, parts: list[Any]) -> int:
        """Sends what fits at once; file slices beyond that follow as the peer takes them. Returns the size of it all.

        Small responses to requests that came together leave together: a write to a socket costs as much as the rest of
        a small request.
        """
        size = sum(map(len, parts))
        if size < SMALLEST:
            if len(parts) > 1:
                parts = [part if isinstance(part, BYTES) else part.read_all() for part in parts]
            self._outbox += parts
            if not self._pumping or len(self._outbox) >= RESPONSES_TOGETHER:
                self._empty_outbox()
        else:
            self._empty_outbox()
            self._send_large(parts)
        return size

    def _send_large(self, parts: list[Any]) -> None:
        assert self._transport is not None
        if len(parts) > 1 and self._transport.get_write_buffer_size() == 0:
            self._send_by_kernel(parts)
            return
        ready: list[Buffer] = []
        ahead = 0
        for index, part in enumerate(parts):
            if isinstance(part, BYTES):
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
        if self._outbox:
            if self._transport is not None and not self._transport.is_closing():
                self._write_at_once(self._transport, b"".join(self._outbox))
            self._outbox.clear()

    def _write_at_once(self, transport: asyncio.Transport, data: bytes) -> None:
        """Not when the loop has heard everybody else: the peer waits for it. What does not fit, and what fails, is the
        transport's."""
        try:
            sent = os.write(self._socket, data) if transport.get_write_buffer_size() == 0 else 0
        except OSError:
            sent = 0
        if sent < len(data):
            transport.write(data[sent:])

    def _send_by_kernel(self, parts: list[Any]) -> None:
        """There are files, and the transport has nothing to send before them."""
        assert self._transport is not None
        if self._files is None:
            peer = self._transport.get_extra_info("socket")
            self._files = FileSender(peer, asyncio.get_running_loop(), self._sent_by_kernel)
        try:
            self._busy = not self._files.send(parts)
        except OSError as error:
            self._close(f"the response could not be sent: {error}")

    def _sent_by_kernel(self, complete: bool) -> None:
        if complete:
            self._resume_requests()
        else:
            self.abort()

    async def _send_slowly(self, parts: list[Any]) -> None:
        for part in parts:
            if isinstance(part, BYTES):
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

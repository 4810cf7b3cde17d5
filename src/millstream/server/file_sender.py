"""Responses that are mostly file: sent by the kernel out of the page cache (sendfile), beside the transport.

The transport owns the socket and would copy every byte twice. The sender has a descriptor of its own for the same
socket and uses it only while the transport has nothing to write, so nothing is ever out of order. What the peer does
not take at once follows when it takes more; meanwhile the connection is busy and writes nothing else. A transport that
changes the bytes on their way (TLS) cannot have one.

While it sends, the socket is corked where the system can do that: the kernel hands a file over in pieces of 64 kB, and
would wake the peer for a few bytes at the end of each, and once more for what follows the last file.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

SMALLEST = 32 * 1024
"""Bytes from which on it is worth it."""
BYTES = (bytes, bytearray, memoryview)
"""What a part of a response is if it is no slice of a file."""
_CORK: int | None = getattr(socket, "TCP_CORK", None)


class FileSender:
    """The sending side of one connection; made when its first large response is sent."""

    def __init__(self, peer: socket.socket, loop: asyncio.AbstractEventLoop, done: Callable[[bool], None]) -> None:
        """`done` is called after a send that had to wait: True if all has left, False if the connection is broken."""
        self._socket = socket.socket(fileno=os.dup(peer.fileno()))
        self._socket.setblocking(False)
        self._loop = loop
        self._done = done
        self._parts: deque[Any] = deque()
        self._sent = 0
        """Bytes of the first part that have left."""
        self.is_waiting = False

    def send(self, parts: Sequence[Any]) -> bool:
        """Whether all has left; otherwise `done` will be called. OSError if the connection is broken."""
        self._parts.extend(parts)
        self._cork(True)
        if self._advance():
            self._cork(False)
            return True
        self.is_waiting = True
        self._loop.add_writer(self._socket.fileno(), self._go_on)
        return False

    def close(self) -> None:
        self._stop_waiting()
        self._parts.clear()
        self._socket.close()

    def _cork(self, on: bool) -> None:
        if _CORK is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, on)

    def _advance(self) -> bool:
        parts = self._parts
        while parts:
            part = parts[0]
            sent = self._sent
            left = len(part) - sent
            try:
                if not left:
                    count = 0
                elif isinstance(part, BYTES):
                    count = self._socket.send(memoryview(part)[sent:] if sent else part)
                else:
                    count = os.sendfile(self._socket.fileno(), part.file.fileno(), part.position + sent, left)
                    if not count:
                        raise OSError(f"a segment ends {left} bytes before the end of what was promised")
            except BlockingIOError:
                return False
            if count < left:
                self._sent = sent + count
            else:
                parts.popleft()
                self._sent = 0
        return True

    def _go_on(self) -> None:
        try:
            if not self._advance():
                return
            self._cork(False)
        except OSError:
            self._stop_waiting()
            self._done(False)
            return
        self._stop_waiting()
        self._done(True)

    def _stop_waiting(self) -> None:
        if self.is_waiting:
            self.is_waiting = False
            self._loop.remove_writer(self._socket.fileno())

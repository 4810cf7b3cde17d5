"""Cuts a byte stream into request frames: four bytes of length, then that many bytes.

Sans I/O: the connection asks for room (`get_buffer`), reports what arrived (`received`) and takes complete frames
(`next_frame`). Small frames share one receive buffer and are handed out as views of it, valid until the next call of
`get_buffer`. For somewhat larger ones the receive buffer is exchanged for a larger one, once. A frame that does not fit
even there gets a buffer of its own which grows with what really arrives, so a peer that announces a huge frame and then
says nothing holds next to no memory. Most of these buffers are of one size and go back to a pool (`give_back`) when the
request has been answered: fresh memory costs the kernel a page fault for every 4 kB.
"""

from __future__ import annotations

import struct

_SIZE = struct.Struct(">i")
RECEIVE_BUFFER_BYTES = 1 << 16
LARGE_RECEIVE_BUFFER_BYTES = 1 << 18
FRAME_BUFFER_BYTES = (1 << 20) + (1 << 16)
"""Enough for the largest batch that clients send by default, about 1 MB."""
POOLED_BUFFERS = 16


class FrameError(ValueError):
    """The peer announced a frame that cannot be."""


class BufferPool:
    """Buffers for large frames that nobody uses now; a few, shared by all connections."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def __len__(self) -> int:
        return len(self._free)

    def take(self, size: int) -> bytearray:
        """For a frame of that size; a buffer that will be of no use to others is no larger than it has to be."""
        if self._free:
            return self._free.pop()
        return bytearray(FRAME_BUFFER_BYTES if size > FRAME_BUFFER_BYTES // 2 else size)

    def give_back(self, buffer: bytearray) -> None:
        if len(buffer) == FRAME_BUFFER_BYTES and len(self._free) < POOLED_BUFFERS:
            self._free.append(buffer)


class FrameReader:
    """The receiving half of one connection."""

    __slots__ = (
        "_buffer",
        "_end",
        "_frame",
        "_frame_filled",
        "_frame_size",
        "_handed_out",
        "_max_bytes",
        "_pool",
        "_start",
        "_view",
    )

    def __init__(self, max_bytes: int, pool: BufferPool) -> None:
        self._max_bytes = max_bytes
        self._pool = pool
        self._handed_out: bytearray | None = None
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._frame: bytearray | None = None
        self._frame_size = self._frame_filled = 0

    @property
    def is_full(self) -> bool:
        """No room left until a frame has been taken."""
        if self._frame is not None:
            return self._frame_filled == self._frame_size
        return self._start == 0 and self._end == len(self._buffer)

    @property
    def is_empty(self) -> bool:
        """Nothing has come since the last frame that was taken."""
        return self._frame is None and self._start == self._end

    @property
    def large_frame_size(self) -> int:
        """The announced size of the frame that has a buffer of its own, or 0."""
        return 0 if self._frame is None else self._frame_size

    def get_buffer(self) -> memoryview:
        """Where the next bytes go; never empty unless `is_full`."""
        if self._frame is not None:
            if self._frame_filled == len(self._frame):
                self._grow()
            return memoryview(self._frame)[self._frame_filled : self._frame_size]
        if self._start == self._end:
            self._start = self._end = 0
            return self._view
        if self._start:
            rest = self._buffer[self._start : self._end]
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        return self._view[self._end :]

    def _grow(self) -> None:
        assert self._frame is not None
        larger = bytearray(min(self._frame_size, 2 * len(self._frame)))
        larger[: self._frame_filled] = self._frame
        self._frame = larger

    def give_back(self) -> None:
        """Nobody looks at the last large frame any more."""
        if self._handed_out is not None:
            self._pool.give_back(self._handed_out)
            self._handed_out = None

    def received(self, count: int) -> None:
        if self._frame is not None:
            self._frame_filled += count
        else:
            self._end += count

    def next_frame(self) -> memoryview | None:
        """The next complete frame without its length, or None. FrameError when the length is not acceptable."""
        if self._frame is not None:
            if self._frame_filled < self._frame_size:
                return None
            frame = memoryview(self._frame)[: self._frame_size]
            self._handed_out, self._frame = self._frame, None
            return frame
        available = self._end - self._start
        if available < 4:
            return None
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        if size < 0 or size > self._max_bytes:
            raise FrameError(f"a frame of {size} bytes; socket.request.max.bytes allows 0 to {self._max_bytes}")
        if available - 4 >= size:
            start = self._start + 4
            self._start = start + size
            return self._view[start : self._start]
        if size + 4 > LARGE_RECEIVE_BUFFER_BYTES:
            self._frame = self._pool.take(size)
            self._frame[: available - 4] = self._view[self._start + 4 : self._end]
            self._frame_size, self._frame_filled = size, available - 4
            self._start = self._end = 0
        elif size + 4 > len(self._buffer):
            larger = bytearray(LARGE_RECEIVE_BUFFER_BYTES)
            larger[:available] = self._view[self._start : self._end]
            self._buffer, self._view = larger, memoryview(larger)
            self._start, self._end = 0, available
        return None

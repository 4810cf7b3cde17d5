"""The limit: a loop that receives frames, writes their bytes to a file and says so. No protocol, no checks, no log.

`PlainLoop` is that loop as a system beside the others, for requests of `raw`.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.systems import System

_BUFFER = 1 << 20
_ANSWER = struct.pack(">ii", 4, 1)
_LENGTH = struct.Struct(">i")


class PlainLoop(System):
    """Receive and write, in Python: what no server in Python can beat."""

    name = "plain loop"
    color = "#2ca02c"
    speaks_kafka = False

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "bench.limit", str(self.port), str(self.folder / "bytes")]


class _Frames:
    """Counts the frames that end in what has come."""

    def __init__(self) -> None:
        self._left = 0
        self._head = b""

    def ended(self, data: memoryview) -> int:
        count = 0
        while data:
            if not self._left:
                needed = _LENGTH.size - len(self._head)
                self._head += data[:needed]
                data = data[needed:]
                if len(self._head) < _LENGTH.size:
                    break
                self._left = _LENGTH.unpack(self._head)[0]
                self._head = b""
            taken = min(self._left, len(data))
            self._left -= taken
            data = data[taken:]
            count += not self._left
        return count


def serve(port: int, file: Path) -> None:
    """Until it is killed; the file begins anew when it has a gigabyte."""
    out = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    selector.register(listener, selectors.EVENT_READ, None)
    buffer = memoryview(bytearray(_BUFFER))
    position = 0
    while True:
        for key, _ in selector.select():
            if key.data is None:
                channel, _ = listener.accept()
                selector.register(channel, selectors.EVENT_READ, _Frames())
                continue
            channel = key.fileobj  # type: ignore[assignment]  # only sockets are registered
            count = channel.recv_into(buffer)
            if not count:
                selector.unregister(channel)
                channel.close()
                continue
            position = 0 if position > 1 << 30 else position
            position += os.pwrite(out, buffer[:count], position)
            channel.send(_ANSWER * key.data.ended(buffer[:count]))


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))

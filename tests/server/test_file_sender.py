"""Files into a socket by the kernel, whatever the peer does."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.log.fetch import FetchSlice
from millstream.log.filesystem import DiskFileSystem
from millstream.server.file_sender import FileSender

DATA = os.urandom(4 << 20)
SMALL_BUFFER = 1 << 16


@pytest.fixture
def slices(tmp_path: Path) -> Callable[[int, int], FetchSlice]:
    """Slices of a file with DATA."""
    path = tmp_path / "segment"
    path.write_bytes(DATA)
    file = DiskFileSystem().open(str(path))
    return lambda position, length: FetchSlice(0, 0, 0, file, position, length, None, False)


class Pair:
    """A sender and its peer."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.peer = socket.create_connection(listener.getsockname())
            self.here, _ = listener.accept()
        self.here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self.here.setblocking(False)
        self.peer.setblocking(False)
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.sender = FileSender(self.here, asyncio.get_running_loop(), self.done.set_result)

    async def receive(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        parts, missing = [], size
        while missing:
            part = await loop.sock_recv(self.peer, min(missing, 100_000))
            assert part
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self.sender.close()
        self.here.close()
        self.peer.close()


def test_what_fits_leaves_at_once(slices: Callable[[int, int], FetchSlice]) -> None:
    async def run() -> None:
        pair = Pair()
        assert pair.sender.send([b"head", slices(10, 5000), b"", slices(0, 0), memoryview(b"tail")])
        assert await pair.receive(5008) == b"head" + DATA[10:5010] + b"tail"
        assert not pair.done.done()
        pair.close()

    asyncio.run(run())


def test_what_the_peer_does_not_take_follows_when_it_does(slices: Callable[[int, int], FetchSlice]) -> None:
    async def run() -> None:
        pair = Pair()
        for _ in range(2):
            pair.done = asyncio.get_running_loop().create_future()
            pair.sender._done = pair.done.set_result
            assert not pair.sender.send([b"head", slices(1, 3 << 20), b"between", slices(0, 1 << 20)])
            assert pair.sender.is_waiting
            expected = b"head" + DATA[1 : 1 + (3 << 20)] + b"between" + DATA[: 1 << 20]
            assert await pair.receive(len(expected)) == expected
            assert await pair.done is True
            assert not pair.sender.is_waiting
        pair.close()

    asyncio.run(run())


def test_a_peer_that_goes_is_told(slices: Callable[[int, int], FetchSlice]) -> None:
    async def run() -> None:
        pair = Pair()
        assert not pair.sender.send([slices(0, 4 << 20)])
        pair.peer.close()
        assert await pair.done is False
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken pipe
            pair.sender.send([b"more"])
        pair.close()

    asyncio.run(run())


def test_closing_ends_the_wait(slices: Callable[[int, int], FetchSlice]) -> None:
    async def run() -> None:
        pair = Pair()
        assert not pair.sender.send([slices(0, 4 << 20)])
        pair.sender.close()
        assert not pair.sender.is_waiting
        pair.close()
        await asyncio.sleep(0)
        assert not pair.done.done()

    asyncio.run(run())


def test_a_file_that_is_too_short_is_an_error(slices: Callable[[int, int], FetchSlice]) -> None:
    async def run() -> None:
        pair = Pair()
        with pytest.raises(OSError, match="a segment ends 10 bytes before the end of what was promised"):
            pair.sender.send([slices(len(DATA) - 100, 110)])
        pair.close()

    asyncio.run(run())

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.server.frames import (
    FRAME_BUFFER_BYTES,
    LARGE_RECEIVE_BUFFER_BYTES,
    POOLED_BUFFERS,
    RECEIVE_BUFFER_BYTES,
    BufferPool,
    FrameError,
    FrameReader,
)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(reader: FrameReader, data: bytes, at_most: int) -> list[bytes]:
    """The frames that come out when the bytes come in pieces."""
    frames: list[bytes] = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data), at_most)
        assert count > 0
        buffer[:count] = data[:count]
        data = data[count:]
        reader.received(count)
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


@given(
    bodies=st.lists(
        st.one_of(st.binary(max_size=200), st.integers(60_000, 300_000).map(lambda size: b"x" * size)), max_size=6
    ),
    at_most=st.integers(1, 100_000),
)
def test_frames_come_out_as_they_went_in(bodies: list[bytes], at_most: int) -> None:
    at_most = max(at_most, sum(map(len, bodies)) // 200)
    reader = FrameReader(1 << 20, BufferPool())
    assert feed(reader, b"".join(map(framed, bodies)), at_most) == bodies


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    reader = FrameReader(1000, BufferPool())
    with pytest.raises(FrameError, match=r"socket.request.max.bytes allows 0 to 1000"):
        feed(reader, struct.pack(">i", size), 4)


def test_a_huge_announcement_holds_little_memory() -> None:
    reader = FrameReader(1 << 30, BufferPool())
    assert feed(reader, struct.pack(">i", 1 << 30), 4) == []
    assert reader.large_frame_size == 1 << 30
    assert len(reader.get_buffer()) == FRAME_BUFFER_BYTES


def test_a_full_reader_says_so_until_a_frame_is_taken() -> None:
    reader = FrameReader(1 << 20, BufferPool())
    data = framed(b"a" * 10) * 10_000
    while not reader.is_full:
        buffer = reader.get_buffer()
        buffer[:] = data[: len(buffer)]
        reader.received(len(buffer))
    assert reader.next_frame() is not None
    assert not reader.is_full


def test_the_buffer_of_an_answered_frame_is_used_again() -> None:
    pool = BufferPool()
    one, other = FrameReader(1 << 30, pool), FrameReader(1 << 30, pool)
    for reader, letter, size in ((one, b"a", 900_000), (one, b"b", 300_000), (other, b"c", 500_000)):
        assert feed(reader, framed(letter * size), 70_000) == [letter * size]
        reader.give_back()
        reader.give_back()  # once is enough
        assert len(pool) == 1


def test_a_frame_that_was_not_given_back_keeps_its_bytes() -> None:
    pool = BufferPool()
    one, other = FrameReader(1 << 30, pool), FrameReader(1 << 30, pool)
    buffer = one.get_buffer()
    buffer[:4] = struct.pack(">i", 300_000)
    one.received(4)
    assert one.next_frame() is None
    one.get_buffer()[:300_000] = b"a" * 300_000
    one.received(300_000)
    frame = one.next_frame()
    assert feed(other, framed(b"b" * 300_000), 70_000) == [b"b" * 300_000]
    assert frame is not None
    assert bytes(frame) == b"a" * 300_000


def test_a_frame_that_is_a_bit_too_large_gets_a_larger_receive_buffer_that_stays() -> None:
    reader = FrameReader(1 << 20, BufferPool())
    assert len(reader.get_buffer()) == RECEIVE_BUFFER_BYTES
    assert feed(reader, framed(b"s") + framed(b"a" * 100_000) + framed(b"s"), 50_000) == [b"s", b"a" * 100_000, b"s"]
    assert reader.large_frame_size == 0
    assert len(reader.get_buffer()) == LARGE_RECEIVE_BUFFER_BYTES


def test_the_pool_is_bounded_and_takes_only_its_own_size() -> None:
    pool = BufferPool()
    buffers = [pool.take(FRAME_BUFFER_BYTES) for _ in range(POOLED_BUFFERS + 2)]
    assert len(pool.take(100_000)) == 100_000
    pool.give_back(bytearray(FRAME_BUFFER_BYTES + 1))
    assert len(pool) == 0
    for buffer in buffers:
        pool.give_back(buffer)
    assert len(pool) == POOLED_BUFFERS

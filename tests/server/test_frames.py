import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.server.frames import FIRST_GROWTH_BYTES, FrameError, FrameReader


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
        st.one_of(st.binary(max_size=200), st.integers(60_000, 200_000).map(lambda size: b"x" * size)), max_size=6
    ),
    at_most=st.integers(1, 100_000),
)
def test_frames_come_out_as_they_went_in(bodies: list[bytes], at_most: int) -> None:
    at_most = max(at_most, sum(map(len, bodies)) // 200)
    reader = FrameReader(max_bytes=1 << 20)
    assert feed(reader, b"".join(map(framed, bodies)), at_most) == bodies


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    reader = FrameReader(max_bytes=1000)
    with pytest.raises(FrameError, match=r"socket.request.max.bytes allows 0 to 1000"):
        feed(reader, struct.pack(">i", size), 4)


def test_a_huge_announcement_holds_little_memory() -> None:
    reader = FrameReader(max_bytes=1 << 30)
    assert feed(reader, struct.pack(">i", 1 << 30), 4) == []
    assert reader.large_frame_size == 1 << 30
    assert len(reader.get_buffer()) == FIRST_GROWTH_BYTES


def test_a_full_reader_says_so_until_a_frame_is_taken() -> None:
    reader = FrameReader(max_bytes=1 << 20)
    data = framed(b"a" * 10) * 10_000
    while not reader.is_full:
        buffer = reader.get_buffer()
        buffer[:] = data[: len(buffer)]
        reader.received(len(buffer))
    assert reader.next_frame() is not None
    assert not reader.is_full

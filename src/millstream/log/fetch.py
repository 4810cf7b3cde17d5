"""What a read of the log gives back: a slice of a segment's file, and the offsets that go with it.

The slice holds the open file, not the bytes: they are read (or sent by the kernel) when the response is written. It
stays readable when the segment is deleted or compacted away meanwhile, because the file lives as long as the slice.
"""

from enum import IntEnum

from millstream.log.filesystem import File


class Isolation(IntEnum):
    """Up to where a reader may see: the high watermark or the last stable offset."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


READ_UNCOMMITTED = Isolation.READ_UNCOMMITTED
READ_COMMITTED = Isolation.READ_COMMITTED


class FetchSlice:
    """`length` bytes from `position` of `file`: whole batches, the last one perhaps cut off by the byte limit.

    `first_entry_incomplete`: the limit cut off even the first batch. `aborted` is the list of (producer id, first
    offset) for READ_COMMITTED, None otherwise. Its `len` is the number of bytes.
    """

    __slots__ = (
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "file",
        "position",
        "length",
        "aborted",
        "first_entry_incomplete",
    )

    def __init__(
        self,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        file: File | None,
        position: int,
        length: int,
        aborted: list[tuple[int, int]] | None,
        first_entry_incomplete: bool,
    ) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.file = file
        self.position = position
        self.length = length
        self.aborted = aborted
        self.first_entry_incomplete = first_entry_incomplete

    def __len__(self) -> int:
        return self.length

    def read_all(self) -> bytes:
        return self.file.read_at(self.length, self.position) if self.file is not None else b""

    def read(self, position: int, size: int) -> bytes:
        """`size` bytes from `position` of the slice, fewer at its end."""
        size = min(size, self.length - position)
        return self.file.read_at(size, self.position + position) if self.file is not None and size > 0 else b""

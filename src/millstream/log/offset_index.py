"""The offset index: from an offset to the place in the segment where a reader can start.

File `<base offset>.index`, entries of 8 bytes, big-endian:

    offset relative to the segment's base offset int32 | position in the segment int32

An entry names the *last* offset of a batch and the position where this batch begins. It is sparse: one entry about
every `index.interval.bytes`. Offsets and positions ascend.
"""

from struct import Struct
from typing import Final

from millstream.log.filesystem import FileSystem
from millstream.log.index_file import IndexFile

ENTRY: Final = Struct(">ii")


class OffsetIndex(IndexFile):
    __slots__ = ("base_offset",)

    def __init__(self, file_system: FileSystem, path: str, base_offset: int, *, size: int, in_memory: bool) -> None:
        super().__init__(file_system, path, ENTRY, size=size, in_memory=in_memory)
        self.base_offset = base_offset

    def append(self, offset: int, position: int) -> None:
        self._append(offset - self.base_offset, position)

    def lookup(self, offset: int) -> int:
        """The position of the last indexed batch that does not end behind `offset`; 0 if there is none."""
        rank = self._rank(0, offset - self.base_offset)
        return int(self._entry(rank - 1)[1]) if rank else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """The last offset of the first indexed batch that begins at `position` or behind it."""
        rank = self._rank(1, position - 1)
        return self.base_offset + int(self._entry(rank)[0]) if rank < self.count else None

    def last_position(self) -> int:
        """The position of the last indexed batch; 0 if there is none."""
        return int(self._entry(self.count - 1)[1]) if self.count else 0

    def entry(self, index: int) -> tuple[int, int]:
        relative, position = self._entry(index)
        return self.base_offset + relative, position

    def truncate_to(self, offset: int) -> None:
        """Remove the entries from `offset` on."""
        count = self.count
        while count and self._entry(count - 1)[0] >= offset - self.base_offset:
            count -= 1
        self._truncate_to_count(count)

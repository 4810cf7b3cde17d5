"""The time index: from a timestamp to an offset where a search for it can start.

File `<base offset>.timeindex`, entries of 12 bytes, big-endian:

    timestamp int64 | offset relative to the segment's base offset int32

An entry says: the greatest timestamp up to and including the batch that ends with this offset is this timestamp.
Timestamps strictly ascend, offsets ascend. When a segment is closed its greatest timestamp becomes the last entry.
"""

from struct import Struct
from typing import Final

from millstream.log.filesystem import FileSystem
from millstream.log.index_file import IndexFile

ENTRY: Final = Struct(">qi")
NO_TIMESTAMP: Final = -1


class TimeIndex(IndexFile):
    __slots__ = ("_last_timestamp", "base_offset")

    def __init__(self, file_system: FileSystem, path: str, base_offset: int, *, size: int, in_memory: bool) -> None:
        super().__init__(file_system, path, ENTRY, size=size, in_memory=in_memory)
        self.base_offset = base_offset
        self._last_timestamp: int | None = None

    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) if there is none."""
        if self.count == 0:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self._entry(self.count - 1)
        return timestamp, self.base_offset + relative

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is greater than all before."""
        if self._last_timestamp is None:
            self._last_timestamp = self.last_entry()[0]
        if timestamp > self._last_timestamp:
            self._append(timestamp, offset - self.base_offset)
            self._last_timestamp = timestamp

    def lookup(self, timestamp: int) -> int:
        """The offset of the last entry whose timestamp is not greater; the base offset if there is none."""
        rank = self._rank(0, timestamp)
        return self.base_offset + int(self._entry(rank - 1)[1]) if rank else self.base_offset

    def entry(self, index: int) -> tuple[int, int]:
        timestamp, relative = self._entry(index)
        return timestamp, self.base_offset + relative

    def reset(self) -> None:
        super().reset()
        self._last_timestamp = None

    def keep_sound_prefix(self, limits: tuple[int, int]) -> None:
        super().keep_sound_prefix(limits)
        self._last_timestamp = None

    def truncate_to(self, offset: int) -> None:
        """Remove the entries from `offset` on."""
        count = self.count
        while count and self._entry(count - 1)[1] >= offset - self.base_offset:
            count -= 1
        self._truncate_to_count(count)
        self._last_timestamp = None

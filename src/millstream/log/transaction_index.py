"""The transaction index: the aborted transactions whose marker lies in the segment.

File `<base offset>.txnindex`, only there if a transaction was aborted; entries of 34 bytes, big-endian:

    version int16 (0) | producer id int64 | first offset int64 | last offset int64 (the marker's)
    last stable offset int64

Entries are in the order of their last offsets; the last stable offset never descends. An entry is written when its
marker is appended; recovery rebuilds the entries of the segments it reads.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from millstream.log.filesystem import FileSystem

ENTRY: Final = Struct(">hqqqq")
_CHUNK: Final = ENTRY.size * 1024


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Nothing is kept in memory but the size: aborts are rare, and few readers ask for them."""

    __slots__ = ("_file_system", "_size", "path")

    def __init__(self, file_system: FileSystem, path: str, *, size: int) -> None:
        self._file_system = file_system
        self._size = size - size % ENTRY.size
        self.path = path

    @property
    def count(self) -> int:
        return self._size // ENTRY.size

    @property
    def size(self) -> int:
        return self._size

    def append(self, entry: AbortedTransaction) -> None:
        self._file_system.open(self.path, create=True).write_all_at(ENTRY.pack(0, *entry), self._size)
        self._size += ENTRY.size

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self._from(0)

    def _from(self, first: int) -> Iterator[AbortedTransaction]:
        position = first * ENTRY.size
        if position >= self._size:
            return
        file = self._file_system.open(self.path)
        while position < self._size:
            data = file.read_at(min(_CHUNK, self._size - position), position)
            if len(data) < ENTRY.size:
                return
            for fields in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]):
                yield AbortedTransaction._make(fields[1:])
            position += len(data)

    def collect(self, first_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """The aborted transactions that touch [first offset, upper bound), and whether later segments need no look."""
        found: list[AbortedTransaction] = []
        if self._size == 0:
            return found, False
        for entry in self._from(self._first_ending_at_or_after(first_offset)):
            if entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def _first_ending_at_or_after(self, offset: int) -> int:
        file = self._file_system.open(self.path)
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if ENTRY.unpack(file.read_at(ENTRY.size, middle * ENTRY.size))[3] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose marker lies at `offset` or behind it."""
        if self._size:
            self._size = self._first_ending_at_or_after(offset) * ENTRY.size
            self._file_system.open(self.path).truncate(self._size)

    def keep_sound_prefix(self, offset: int) -> None:
        """Cut at the first entry that does not ascend or reaches `offset`: a crash may have left anything there."""
        count, last = 0, -1
        for entry in self:
            if not (last < entry.last_offset < offset and 0 <= entry.first_offset < entry.last_offset):
                break
            last = entry.last_offset
            count += 1
        if count < self.count:
            self._size = count * ENTRY.size
            self._file_system.open(self.path).truncate(self._size)

    def reset(self) -> None:
        self._size = 0
        self._file_system.remove(self.path)

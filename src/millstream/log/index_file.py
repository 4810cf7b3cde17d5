"""What the offset index and the time index share: fixed-size entries in ascending order, kept small in memory.

The active segment's entries are a bytearray. The file comes with the first of them, so that Kafka's tools find it; the
others follow from time to time, and when the segment is flushed, rolled or closed. A crash before that loses nothing,
because recovery reads the active segment anyway and rebuilds them. A closed segment's
entries stay on disk: a look-up opens the file, halves it with small reads and closes it again, which takes some tens of
microseconds, no memory and no descriptor. Sequential readers do not come here at all (see `segment`).
"""

from contextlib import suppress
from struct import Struct
from typing import Any, Final

from millstream.log.filesystem import FileSystem

_PAGE: Final = 4096


class IndexFile:
    """Entries of one struct, whose field `_key` ascends."""

    __slots__ = ("_entries", "_file_system", "_persisted", "_size", "_struct", "path")

    def __init__(self, file_system: FileSystem, path: str, struct: Struct, *, size: int, in_memory: bool) -> None:
        self._file_system = file_system
        self._struct = struct
        self.path = path
        self._size = size - size % struct.size
        self._persisted = self._size
        self._entries: bytearray | None = None
        if in_memory:
            self._entries = bytearray(file_system.read_bytes(path)[: self._size] if self._size else b"")

    @property
    def count(self) -> int:
        return self._size // self._struct.size

    @property
    def size(self) -> int:
        return self._size

    def _entry(self, index: int) -> tuple[Any, ...]:
        position = index * self._struct.size
        if self._entries is not None:
            return self._struct.unpack_from(self._entries, position)
        return self._struct.unpack(self._file_system.open(self.path).read_at(self._struct.size, position))

    def _append(self, *fields: int) -> None:
        if self._entries is None:
            self._entries = bytearray(self._file_system.read_bytes(self.path)[: self._size])
        self._entries += self._struct.pack(*fields)
        self._size += self._struct.size
        if self._persisted == 0:
            with suppress(OSError):  # the next write brings it
                self.write()

    def _rank(self, field: int, target: int) -> int:
        """How many entries have a `field` that is not greater than `target`."""
        size = self._struct.size
        low, high, first = 0, self._size // size, 0
        if high == 0:
            return 0
        data: bytes | bytearray
        if self._entries is not None:
            data = self._entries
        else:
            # Halve the file until what is left fits one page, then search that page in memory.
            file = self._file_system.open(self.path)
            while (high - low) * size > _PAGE:
                middle = (low + high) // 2
                if self._struct.unpack(file.read_at(size, middle * size))[field] <= target:
                    low = middle + 1
                else:
                    high = middle
            data, first = file.read_at((high - low) * size, low * size), low
        while low < high:
            middle = (low + high) // 2
            if self._struct.unpack_from(data, (middle - first) * size)[field] <= target:
                low = middle + 1
            else:
                high = middle
        return low

    def reset(self) -> None:
        """Forget all entries; they are about to be rebuilt."""
        self._entries = bytearray()
        self._size = 0
        self._persisted = 0
        self._file_system.open(self.path, create=True).truncate(0)

    def _truncate_to_count(self, count: int) -> None:
        size = count * self._struct.size
        if size >= self._size:
            return
        if self._entries is None:
            self._entries = bytearray(self._file_system.read_bytes(self.path)[: self._size])
        del self._entries[size:]
        self._size = size
        if self._persisted > size:
            self._persisted = size
            self._file_system.open(self.path, create=True).truncate(size)

    def keep_sound_prefix(self, limits: tuple[int, int]) -> None:
        """Cut at the first entry that does not ascend, or has a field that reaches its limit.

        After a crash: what was synced is a prefix, what comes behind may be anything.
        """
        data = self._file_system.read_bytes(self.path)[: self._size] if self._size else b""
        count, last = 0, (-1, -1)
        for entry in self._struct.iter_unpack(data):
            if not (last[0] < entry[0] < limits[0] and last[1] < entry[1] < limits[1]):
                break
            last = entry[0], entry[1]
            count += 1
        self._truncate_to_count(count)

    def write(self) -> None:
        """Bring the entries that are not in the file yet into it (no fsync)."""
        if self._entries is not None and self._persisted < self._size:
            file = self._file_system.open(self.path, create=True)
            file.write_all_at(self._entries[self._persisted :], self._persisted)
            self._persisted = self._size

    def seal(self) -> None:
        """The segment is closed: write the entries, if only an empty file, and keep none in memory."""
        self.write()
        if self._size == 0:
            self._file_system.open(self.path, create=True)
        self._entries = None

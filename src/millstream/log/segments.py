"""The segments of one log in order of their base offsets, and how they leave: deleted, or replaced by compacted ones.

Every step can be the last before a crash. To delete a segment is to rename its files to `.deleted` (they are removed
`file.delete.delay.ms` later, or at the next start). To replace segments:

1. the compacted segment is complete and synced as `.cleaned`; a crash now leaves the old ones, `.cleaned` is removed;
2. its files are renamed to `.swap`, the `.log` last; from here on a start completes the replacement;
3. the old segments are deleted, then `.swap` is renamed away, the `.log` last.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from millstream.log.open_files import OpenFiles
from millstream.log.producer_state import SNAPSHOT_SUFFIX
from millstream.log.segment import DELETED_SUFFIX, Segment, segment_name

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

_base_offset = attrgetter("base_offset")


class Segments:
    """Never empty once the log is open; the last one is the active segment."""

    __slots__ = ("_items", "_open_files", "_removals", "active", "directory")

    def __init__(self, open_files: OpenFiles, directory: str, items: list[Segment]) -> None:
        self._open_files = open_files
        self.directory = directory
        self._items = items
        self.active = items[-1]
        # When, and which files: deleted segments wait for file.delete.delay.ms.
        self._removals: list[tuple[int, list[str]]] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __getitem__(self, index: int) -> Segment:
        return self._items[index]

    def floor_index(self, offset: int) -> int:
        """The index of the last segment that does not begin behind `offset`; -1 if there is none."""
        active = self.active
        if offset >= active.base_offset:
            return len(self._items) - 1
        return bisect_right(self._items, offset, key=_base_offset) - 1

    def index_of(self, segment: Segment) -> int:
        return self._items.index(segment)

    def between(self, first_offset: int, end_offset: int) -> list[Segment]:
        """The segments that may hold offsets from `first_offset` up to, not including, `end_offset`."""
        if first_offset >= end_offset:
            return []
        start = max(self.floor_index(first_offset), 0)
        return [segment for segment in self._items[start:] if segment.base_offset < end_offset]

    def next_base_offset(self, index: int) -> int | None:
        return self._items[index + 1].base_offset if index + 1 < len(self._items) else None

    def end_of(self, segment: Segment, log_end_offset: int) -> int:
        """The offset where the next segment begins, or the log's end."""
        return self.next_base_offset(self.floor_index(segment.base_offset)) or log_end_offset

    def have_aborted(self, offset: int) -> bool:
        """Whether a transaction was aborted at `offset` or behind it, for all that is known without a look."""
        return any(segment.transaction_index.size for segment in self._items[max(self.floor_index(offset), 0) :])

    def size(self) -> int:
        return sum(segment.size for segment in self._items)

    def add(self, segment: Segment) -> None:
        self._items.append(segment)
        self.active = segment

    def delete(self, gone: Sequence[Segment], when: int) -> None:
        """Take segments out of the log; their files are removed at `when`. Never the active one."""
        paths: list[str] = []
        for segment in gone:
            segment.rename_suffix("", DELETED_SUFFIX)
            self._items.remove(segment)
            self._open_files.forget(segment.log_path)
            paths += segment.paths()
            snapshot = f"{self.directory}/{segment_name(segment.base_offset)}{SNAPSHOT_SUFFIX}"
            if self._open_files.file_system.exists(snapshot):
                self._open_files.file_system.rename(snapshot, snapshot + DELETED_SUFFIX)
                paths.append(snapshot + DELETED_SUFFIX)
        if paths:
            self._removals.append((when, paths))

    def replace(self, old: Sequence[Segment], cleaned: Segment, when: int) -> None:
        """Put a compacted segment, complete and synced, into the place of `old`."""
        cleaned.rename_suffix(CLEANED_SUFFIX, SWAP_SUFFIX)
        paths: list[str] = []
        index = self._items.index(old[0])
        for segment in old:
            segment.rename_suffix("", DELETED_SUFFIX)
            self._open_files.forget(segment.log_path)
            paths += segment.paths()
        self._items[index : index + len(old)] = [cleaned]
        cleaned.rename_suffix(SWAP_SUFFIX, "")
        for segment in old[1:]:
            snapshot = f"{self.directory}/{segment_name(segment.base_offset)}{SNAPSHOT_SUFFIX}"
            if self._open_files.file_system.exists(snapshot):
                self._open_files.file_system.rename(snapshot, snapshot + DELETED_SUFFIX)
                paths.append(snapshot + DELETED_SUFFIX)
        self._removals.append((when, paths))

    def due_removals(self, now: int) -> list[str]:
        """The files whose delay is over; the caller removes them (in a worker: unlinking a large file takes time)."""
        due = [path for when, paths in self._removals if when <= now for path in paths]
        if due:
            self._removals = [removal for removal in self._removals if removal[0] > now]
        return due

    def drop_from(self, index: int) -> None:
        """Recovery found the log broken off: the segments from `index` on hold nothing that can be trusted."""
        for segment in self._items[index:]:
            self._open_files.forget(segment.log_path)
            for path in segment.paths():
                self._open_files.file_system.remove(path)
        del self._items[index:]
        if self._items:
            self.active = self._items[-1]

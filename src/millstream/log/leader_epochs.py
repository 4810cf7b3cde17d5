"""The leader epochs of a log: from which offset on each epoch's leader wrote.

File `leader-epoch-checkpoint`, text: a line with the version 0, a line with the number of entries, then `epoch offset`
in each line, both ascending. It is replaced as a whole. It need not be synced: recovery adds the epochs of the batches
it reads, and all others were written before the recovery point.
"""

from typing import Final

from millstream.log.filesystem import FileSystem

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    __slots__ = ("_entries", "_file_system", "latest", "path")

    def __init__(self, file_system: FileSystem, directory: str, *, exists: bool) -> None:
        self._file_system = file_system
        self.path = f"{directory}/{FILE_NAME}"
        self._entries: list[tuple[int, int]] = self._read() if exists else []
        self.latest = self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    def _read(self) -> list[tuple[int, int]]:
        lines = self._file_system.read_bytes(self.path).decode(errors="replace").split("\n")
        entries: list[tuple[int, int]] = []
        try:
            for line in lines[2 : 2 + int(lines[1])]:
                epoch, offset = line.split(" ")
                entries.append((int(epoch), int(offset)))
        except (ValueError, IndexError):
            return []
        return entries

    def _write(self) -> None:
        lines = ["0", str(len(self._entries)), *(f"{epoch} {offset}" for epoch, offset in self._entries), ""]
        self._file_system.write_atomically(self.path, "\n".join(lines).encode(), sync=False)

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(self._entries)

    def assign(self, epoch: int, offset: int) -> None:
        """A batch of this epoch begins at `offset`. Raises OSError before anything changed."""
        if epoch <= self.latest:
            return
        before = self._entries
        # An epoch that wrote nothing behind its start is replaced, so that offsets ascend strictly.
        self._entries = [entry for entry in before if entry[1] < offset]
        self._entries.append((epoch, offset))
        try:
            self._write()
        except OSError:
            self._entries = before
            raise
        self.latest = epoch

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch in which `offset` was written, -1 if that is not known."""
        found = UNDEFINED_EPOCH
        for epoch, start in self._entries:
            if start > offset:
                break
            found = epoch
        return found

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The greatest epoch not above `epoch` and where it ended; (-1, -1) if that is not known."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        floor = epoch
        for entry_epoch, start in self._entries:
            if entry_epoch > epoch:
                return floor, start
            floor = entry_epoch
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET

    def truncate_from_start(self, offset: int) -> None:
        """The log now begins at `offset`; the epoch it lies in begins there too."""
        kept = [entry for entry in self._entries if entry[1] > offset]
        gone = len(self._entries) - len(kept)
        if gone:
            kept.insert(0, (self._entries[gone - 1][0], offset))
            if kept != self._entries:
                self._entries = kept
                self._write()

    def truncate_from_end(self, offset: int) -> None:
        """The log now ends at `offset`."""
        kept = [entry for entry in self._entries if entry[1] < offset]
        if kept != self._entries:
            self._entries = kept
            self.latest = kept[-1][0] if kept else UNDEFINED_EPOCH
            self._write()

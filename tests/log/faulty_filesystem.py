"""A file system for tests: the real one underneath, with faults on demand and a power failure that can be staged.

`fail` is asked before every operation and may return the OSError to raise. `room` is the space left on the device: a
write that does not fit is torn, as a full disk tears it. `crash` takes away what was never synced: each file keeps what
it had when it was last synced and some part of what was written since, the end of it perhaps scrambled.
"""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

from millstream.log.filesystem import Bytes, DiskFileSystem, Entry, File


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def io_error() -> OSError:
    return OSError(errno.EIO, "Input/output error")


class FaultyFile:
    def __init__(self, owner: "FaultyFileSystem", path: str, file: File) -> None:
        self._owner = owner
        self._path = path
        self._file = file

    def write_all_at(self, data: Bytes, position: int) -> None:
        self._owner.check("write", self._path)
        self._owner.overwritten(self._path, position, self._file.read_at(len(data), position))
        growth = position + len(data) - self._file.size()
        room = self._owner.room
        if room is not None and growth > room:
            self._file.write_all_at(data[: len(data) - growth + room], position)
            self._owner.room = 0
            raise no_space()
        self._file.write_all_at(data, position)
        if room is not None:
            self._owner.room = room - max(growth, 0)

    def read_at(self, size: int, position: int) -> bytes:
        self._owner.check("read", self._path)
        return self._file.read_at(size, position)

    def truncate(self, size: int) -> None:
        self._owner.check("truncate", self._path)
        freed = self._file.size() - size
        self._file.truncate(size)
        self._owner.truncated(self._path, size)
        if self._owner.room is not None:
            self._owner.room += max(freed, 0)

    def sync(self) -> None:
        self._owner.check("sync", self._path)
        self._owner.synced_file(self._path, self._file.size())

    def size(self) -> int:
        return self._file.size()

    def fileno(self) -> int:
        return self._file.fileno()


class FaultyFileSystem(DiskFileSystem):
    def __init__(self) -> None:
        self.fail: Callable[[str, str], OSError | None] = lambda _operation, _path: None
        self.room: int | None = None
        self.syncs: list[str] = []
        self._synced: dict[str, int] = {}
        self._overwritten: dict[str, list[tuple[int, bytes]]] = {}

    def check(self, operation: str, path: str) -> None:
        error = self.fail(operation, path)
        if error is not None:
            raise error

    def heal(self) -> None:
        self.fail = lambda _operation, _path: None
        self.room = None

    def synced_file(self, path: str, size: int) -> None:
        self.syncs.append(path)
        self._synced[path] = size
        self._overwritten.pop(path, None)

    def overwritten(self, path: str, position: int, before: bytes) -> None:
        """Bytes of the file are about to be others: a crash may bring back those that were synced."""
        self._overwritten.setdefault(path, []).append((position, before))

    def truncated(self, path: str, size: int) -> None:
        if path in self._synced:
            self._synced[path] = min(self._synced[path], size)

    def open(self, path: str, *, create: bool = False) -> File:
        self.check("open", path)
        if create and not self.exists(path):
            self._synced[path] = 0
        return FaultyFile(self, path, super().open(path, create=create))

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.check("write", path)
        if self.room is not None and len(data) > self.room:
            raise no_space()
        super().write_atomically(path, data, sync=False)
        self._synced[path] = len(data) if sync else 0

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        super().rename(source, target)
        size = self._synced.pop(source, None)
        self._synced.pop(target, None)
        self._overwritten[target] = self._overwritten.pop(source, [])
        if size is not None:
            self._synced[target] = size

    def remove(self, path: str) -> None:
        self.check("remove", path)
        super().remove(path)
        self._synced.pop(path, None)
        self._overwritten.pop(path, None)

    def entries(self, path: str) -> list[Entry]:
        self.check("entries", path)
        return super().entries(path)

    def sync_directory(self, path: str) -> None:
        self.check("sync", path)

    def crash(self, chance: random.Random) -> None:
        """The machine loses power. All open files and objects are to be thrown away by the caller."""
        self.heal()
        for path, synced in list(self._synced.items()):
            if not self.exists(path):
                del self._synced[path]
                continue
            with Path(path).open("r+b") as file:
                for position, before in reversed(self._overwritten.pop(path, [])):
                    if chance.random() < 0.5:
                        file.seek(position)
                        file.write(before[: max(synced - position, 0)])
                size = file.seek(0, os.SEEK_END)
                kept = size
                if size > synced:
                    kept = chance.choice((synced, size, size, chance.randint(synced, size)))
                    file.truncate(kept)
                    torn = min(chance.choice((0, 0, 7, 70)), kept - synced)
                    file.seek(kept - torn)
                    file.write(chance.randbytes(torn))
            self._synced[path] = kept

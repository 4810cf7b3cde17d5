"""All that the log asks of a file system, behind two small protocols, so that tests can make it fail.

A `File` is read and written at positions (there is no current position, so readers and the writer share one), and is
closed when nobody refers to it any more: a slice handed to a consumer stays readable after its segment was deleted.
`write_all_at` writes everything or raises; what a failed write left behind is the caller's to cut off.

Names are plain strings: there are many of them and they are joined often. Nothing here retries, nothing here logs.
"""

import os
import shutil
from pathlib import Path
from typing import NamedTuple, Protocol

Bytes = bytes | bytearray | memoryview

_sync_data = getattr(os, "fdatasync", os.fsync)


class Entry(NamedTuple):
    """A file or folder inside a folder."""

    name: str
    size: int
    is_directory: bool


class File(Protocol):
    """An open file."""

    def write_all_at(self, data: Bytes, position: int) -> None: ...

    def read_at(self, size: int, position: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None: ...

    def size(self) -> int: ...

    def fileno(self) -> int: ...


class FileSystem(Protocol):
    """What happens to whole files and folders."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def read_bytes(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Either the old or the new content is there, whatever happens; with `sync`, the new one for good."""

    def entries(self, path: str) -> list[Entry]: ...

    def exists(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is as good as removed."""

    def remove_tree(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, when: int) -> None: ...


class DiskFile:
    """A file descriptor that lives as long as this object."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __del__(self) -> None:
        os.close(self._fd)

    def write_all_at(self, data: Bytes, position: int) -> None:
        expected = len(data)
        written = os.pwrite(self._fd, data, position)
        while written < expected:
            written += os.pwrite(self._fd, memoryview(data)[written:], position + written)

    def read_at(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts, missing = [data], size - len(data)
        while missing:
            more = os.pread(self._fd, missing, position + size - missing)
            if not more:
                break
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        _sync_data(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        return self._fd


class DiskFileSystem:
    """The machine's file system."""

    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC
        return DiskFile(os.open(path, flags | os.O_CREAT if create else flags, 0o644))

    def read_bytes(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        with Path(temporary).open("wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        self.rename(temporary, path)
        if sync:
            self.sync_directory(path.rpartition("/")[0])

    def entries(self, path: str) -> list[Entry]:
        found: list[Entry] = []
        with os.scandir(path) as items:
            for item in items:
                is_directory = item.is_dir()
                found.append(Entry(item.name, 0 if is_directory else item.stat().st_size, is_directory))
        found.sort()
        return found

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def make_directory(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def modified_ms(self, path: str) -> int:
        return Path(path).stat().st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, when: int) -> None:
        os.utime(path, ns=(when * 1_000_000, when * 1_000_000))

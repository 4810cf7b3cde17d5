"""The real file system, where it does more than pass on."""

import os
from pathlib import Path

import pytest

from millstream.log.filesystem import DiskFileSystem

FILES = DiskFileSystem()


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FILES.open(str(tmp_path / "x"), create=True)
    real = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda fd, data, position: real(fd, data[:3], position))
    file.write_all_at(b"abcdefghij", 4)
    assert (tmp_path / "x").read_bytes() == b"\x00" * 4 + b"abcdefghij"


def test_short_reads_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"abcdefghij")
    file = FILES.open(str(tmp_path / "x"))
    real = os.pread
    monkeypatch.setattr("os.pread", lambda fd, size, position: real(fd, min(size, 3), position))
    assert file.read_at(8, 1) == b"bcdefghi"
    assert file.read_at(100, 5) == b"fghij"
    assert file.read_at(5, 50) == b""


def test_descriptors_are_closed_with_their_object(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "x"), create=True)
    fd = file.fileno()
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "x"
    FILES.write_atomically(str(path), b"old", sync=sync)
    FILES.write_atomically(str(path), b"new", sync=sync)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in FILES.entries(str(tmp_path))] == ["x"]
    assert FILES.entries(str(tmp_path))[0].size == 3

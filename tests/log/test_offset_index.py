"""The offset index, in memory and on disk."""

from pathlib import Path
from struct import unpack

import pytest

from millstream.log.filesystem import DiskFileSystem
from millstream.log.offset_index import OffsetIndex

BASE = 1000


def loaded(path: Path, *, in_memory: bool) -> OffsetIndex:
    size = path.stat().st_size if path.exists() else 0
    return OffsetIndex(DiskFileSystem(), str(path), BASE, size=size, in_memory=in_memory)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.index"
    index = loaded(path, in_memory=True)
    for n in range(2000):
        index.append(BASE + n * 10 + 9, n * 100)
    index.seal()
    return path


def test_the_layout(path: Path) -> None:
    assert path.stat().st_size == 16_000
    assert unpack(">iiii", path.read_bytes()[:16]) == (9, 0, 19, 100)


@pytest.mark.parametrize("in_memory", [True, False])
def test_look_ups(path: Path, in_memory: bool) -> None:
    index = loaded(path, in_memory=in_memory)
    assert index.count == 2000
    for n in (0, 1, 2, 511, 512, 513, 1024, 1998, 1999):
        assert index.lookup(BASE + n * 10 + 9) == n * 100
        assert index.lookup(BASE + n * 10 + 18) == n * 100
        assert index.offset_at_or_after(n * 100) == BASE + n * 10 + 9
        assert index.offset_at_or_after(n * 100 - 50) == BASE + n * 10 + 9
    assert index.lookup(BASE + 8) == index.lookup(0) == 0
    assert index.lookup(10**9) == 199_900
    assert index.offset_at_or_after(199_901) is None
    assert index.last_position() == 199_900


def test_an_empty_one(tmp_path: Path) -> None:
    index = loaded(tmp_path / "y.index", in_memory=True)
    assert (index.lookup(BASE + 5), index.last_position(), index.offset_at_or_after(0)) == (0, 0, None)
    index.seal()
    assert (tmp_path / "y.index").read_bytes() == b""


def test_a_sealed_index_can_be_appended_to_again(path: Path) -> None:
    index = loaded(path, in_memory=False)
    index.append(BASE + 30_000, 200_000)
    index.write()
    assert loaded(path, in_memory=False).entry(2000) == (BASE + 30_000, 200_000)
    assert loaded(path, in_memory=False).entry(1999) == (BASE + 19_999, 199_900)


@pytest.mark.parametrize("in_memory", [True, False])
def test_truncating(path: Path, in_memory: bool) -> None:
    index = loaded(path, in_memory=in_memory)
    index.truncate_to(BASE + 29)
    assert index.count == 2
    assert path.stat().st_size == 16
    index.append(BASE + 50, 777)
    index.seal()
    assert loaded(path, in_memory=False).entry(2) == (BASE + 50, 777)


def test_half_an_entry_at_the_end_is_not_seen(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])
    assert loaded(path, in_memory=True).count == 1999

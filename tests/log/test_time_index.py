"""The time index: only greater timestamps are entered."""

from pathlib import Path
from struct import unpack

from millstream.log.filesystem import DiskFileSystem
from millstream.log.time_index import TimeIndex

BASE = 50


def loaded(path: Path, *, in_memory: bool) -> TimeIndex:
    size = path.stat().st_size if path.exists() else 0
    return TimeIndex(DiskFileSystem(), str(path), BASE, size=size, in_memory=in_memory)


def test_entries_ascend(tmp_path: Path) -> None:
    path = tmp_path / "x.timeindex"
    index = loaded(path, in_memory=True)
    assert index.last_entry() == (-1, BASE)
    for timestamp, offset in ((100, 51), (100, 52), (90, 53), (200, 54), (-1, 55)):
        index.maybe_append(timestamp, offset)
    assert [index.entry(n) for n in range(index.count)] == [(100, 51), (200, 54)]
    index.seal()
    assert unpack(">qiqi", path.read_bytes()) == (100, 1, 200, 4)
    for again in (loaded(path, in_memory=False), loaded(path, in_memory=True)):
        assert again.last_entry() == (200, 54)
        assert [again.lookup(timestamp) for timestamp in (99, 100, 199, 200, 999)] == [BASE, 51, 51, 54, 54]
        again.maybe_append(150, 60)
        assert again.count == 2


def test_truncating(tmp_path: Path) -> None:
    index = loaded(tmp_path / "x.timeindex", in_memory=True)
    for n in range(10):
        index.maybe_append(n * 10, BASE + n)
    index.write()
    index.truncate_to(BASE + 4)
    assert index.last_entry() == (30, BASE + 3)
    index.maybe_append(35, BASE + 4)
    assert index.last_entry() == (35, BASE + 4)
    index.reset()
    assert index.last_entry() == (-1, BASE)
    assert (tmp_path / "x.timeindex").stat().st_size == 0

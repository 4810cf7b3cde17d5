"""A bounded number of open files."""

import resource
from pathlib import Path

import pytest

from millstream.log.filesystem import DiskFileSystem
from millstream.log.open_files import FEWEST, MOST, OpenFiles, affordable


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    paths = [tmp_path / str(n) for n in range(4)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [str(path) for path in paths]


def test_the_least_recently_used_is_let_go(paths: list[str]) -> None:
    files = OpenFiles(DiskFileSystem(), limit=2)
    first = files.get(paths[0])
    files.get(paths[1])
    assert files.get(paths[0]) is first
    second = files.get(paths[2])
    assert len(files) == 2
    assert files.get(paths[0]) is first
    assert files.get(paths[2]) is second


def test_a_file_lives_as_long_as_somebody_has_it(paths: list[str]) -> None:
    files = OpenFiles(DiskFileSystem(), limit=1)
    first = files.get(paths[0])
    files.get(paths[1])
    Path(paths[0]).unlink()
    assert first.read_at(10, 0) == b"0"
    with pytest.raises(FileNotFoundError):
        files.get(paths[0])


def test_names_change(paths: list[str], tmp_path: Path) -> None:
    files = OpenFiles(DiskFileSystem())
    first = files.get(paths[0])
    files.renamed(paths[0], paths[1])
    assert files.get(paths[1]) is first
    files.forget(paths[1])
    assert files.get(paths[1]) is not first
    files.forget_under(str(tmp_path))
    assert len(files) == 0


@pytest.mark.parametrize(
    ("allowed", "files"), [(100, FEWEST), (4096, 2048), (1 << 20, MOST), (resource.RLIM_INFINITY, MOST)]
)
def test_half_of_what_the_process_may_open_is_affordable(
    allowed: int, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, resource.RLIM_INFINITY))
    assert affordable() == files

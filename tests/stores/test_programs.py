"""Finding installed programs, and what is said when one is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.stores import MariaDB, PostgreSQL, Redis, SparkCluster, Store, StoreError, postgresql, programs


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on the PATH and nowhere else."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "SERVER_FOLDERS", ())
    monkeypatch.setattr(postgresql, "FOLDERS", ())


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (MariaDB, "MariaDB is not installed: apt-get install mariadb-server (macOS: brew install mariadb)"),
        (PostgreSQL, "PostgreSQL is not installed: apt-get install postgresql (macOS: brew install postgresql)"),
        (Redis, "Redis is not installed: apt-get install redis-server (macOS: brew install redis)"),
    ],
)
@pytest.mark.usefixtures("bare_machine")
def test_a_missing_program_is_named_with_its_package(store: Callable[[Path], Store], said: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        store(tmp_path).start()
    assert str(caught.value) == said


def test_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"Spark is not installed: pip install 'millstream\[spark\]'"):
        SparkCluster(tmp_path).start()


@pytest.mark.usefixtures("bare_machine")
def test_the_path_comes_first_and_then_the_highest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> str:
        folders = (f"{tmp_path}/lib/*/bin",)
        return programs.find_program("Mill", ("mill", "old-mill"), package="mill", formula="mill", folders=folders)

    with pytest.raises(StoreError, match="Mill is not installed"):
        find()
    old = program(tmp_path / "path" / "old-mill")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find() == str(old)
    program(tmp_path / "lib" / "9" / "bin" / "mill")
    newest = program(tmp_path / "lib" / "15" / "bin" / "mill")
    assert find() == str(newest)
    on_the_path = program(tmp_path / "path" / "mill")
    assert find() == str(on_the_path)

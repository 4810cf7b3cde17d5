"""`millstream example`: which there are, and what is said when one cannot be run."""

from pathlib import Path

import pytest

from millstream.cli import example
from support.cli import refused, succeed

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NAMES = {folder.parent.name.replace("_", "-") for folder in EXAMPLES.glob("*/example.py")}


def test_every_example_is_listed_with_what_it_shows() -> None:
    rows = succeed("example", "list", "--json").json
    assert {row["name"] for row in rows} == NAMES
    assert "clicks" in NAMES
    for row in rows:
        assert row["shows"], row["name"]
        assert Path(row["folder"], "example.py").is_file()


def test_the_list_for_people_has_a_line_for_each() -> None:
    heading, *lines = succeed("example", "list").stdout.splitlines()
    assert heading.split() == ["EXAMPLE", "SHOWS"]
    assert {line.split()[0] for line in lines} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_example_says_how_it_is_used(name: str) -> None:
    said = succeed("example", "run", name, "--", "--help").stdout
    assert said.startswith(f"usage: millstream example run {name} --")
    for option in ("--bootstrap", "--engine", "--out", "--json"):
        assert option in said


def test_an_example_that_does_not_exist() -> None:
    said = refused(4, "example", "run", "clciks")
    assert said == "millstream: there is no example 'clciks'; did you mean 'clicks'?\n"
    assert f"; there are: {', '.join(sorted(NAMES))}" in refused(4, "example", "run", "zzz")


def test_an_option_that_does_not_exist() -> None:
    assert "--sconds" in refused(2, "example", "run", "clicks", "--sconds=3")


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan"])
def test_a_run_takes_some_time(seconds: str) -> None:
    assert "is not more than 0" in refused(2, "example", "run", "clicks", "--", f"--seconds={seconds}")


def test_a_cluster_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    said = refused(3, "example", "run", "clicks", "--", "--bootstrap", "127.0.0.1:1", "--out", str(tmp_path))
    assert said.startswith("millstream: no cluster answers at 127.0.0.1:1")
    assert said.count("\n") == 1


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "needy"
    folder.mkdir()
    (folder / "example.py").write_text('"""Needs something."""\nimport no_such_library\n')
    monkeypatch.setattr(example, "PLACES", (tmp_path, *example.PLACES))
    said = refused(1, "example", "run", "needy")
    assert said == "millstream: needy needs no_such_library: pip install 'millstream[examples]' brings it\n"


def test_an_installation_without_examples_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(example, "PLACES", (tmp_path,))
    assert refused(1, "example", "list") == "millstream: the examples are not part of this installation\n"

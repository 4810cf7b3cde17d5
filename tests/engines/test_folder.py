"""Whose data folder it is."""

from pathlib import Path

import pytest

from millstream.engines import folder
from millstream.engines.errors import EngineError


def test_a_new_folder_becomes_the_engines_own(tmp_path: Path) -> None:
    data = tmp_path / "new" / "folder"
    assert folder.owner(data) is None
    folder.claim(data, "kafka")
    assert folder.owner(data) == "kafka"
    folder.claim(data, "kafka")


def test_the_other_engines_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder.claim(tmp_path, "kafka")
    with pytest.raises(EngineError, match=r"holds the data of the kafka engine.*--engine kafka.*--data"):
        folder.claim(tmp_path, "embedded")
    assert folder.owner(tmp_path) == "kafka"


def test_a_folder_of_serve_is_the_embedded_engines(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert folder.owner(tmp_path) == "embedded"
    with pytest.raises(EngineError, match="embedded"):
        folder.claim(tmp_path, "kafka")


def test_a_place_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="cannot be the data folder"):
        folder.claim(tmp_path / "file" / "data", "embedded")

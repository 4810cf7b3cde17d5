"""Apache Kafka's jars and Java: what goes wrong there is said as an engine's error."""

from pathlib import Path

import pytest

from millstream.engines import jars
from millstream.engines.errors import EngineError
from support.fake_java import fake_java


def test_jars_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, "echo 'module not found: x'; exit 1")
    with pytest.raises(EngineError, match=r"jars of Apache Kafka 4\.3\.1 are not to be had .* module not found: x"):
        jars.fetch(tmp_path / "cache")


def test_no_pyspark_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"pip install 'millstream\[kafka\]'"):
        jars.fetch(tmp_path / "cache")


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineError, match=r"^Apache Kafka needs Java"):
        jars.find_java()

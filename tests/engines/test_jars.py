"""Fetching Kafka's jars, with a fake Ivy: complete or not at all, and the reason in one line."""

from pathlib import Path

import pytest

from millstream.engines import jars
from millstream.engines.engine import Step
from millstream.engines.errors import EngineError
from support.fake_java import fake_java

# The last argument is the pattern of the files to be written.
WORKS = """
for last in "$@"; do :; done
echo '	found org.apache.kafka#kafka_2.13;4.3.1 in public'
echo '	found org.apache.kafka#kafka-tools;4.3.1 in public'
echo '	found org.apache.kafka#kafka-clients;4.3.1 in public'
for name in kafka_2.13 kafka-tools kafka-clients; do
  echo jar > "$(dirname "$last")/$name-4.3.1.jar"
  echo "	[SUCCESSFUL ] org.apache.kafka#$name;4.3.1!$name.jar (20ms)"
done
echo jar > "$(dirname "$last")/kafka-clients-4.3.1-sources.jar"
"""
FAILS = """
for last in "$@"; do :; done
echo half > "$(dirname "$last")/kafka_2.13-4.3.1.jar"
echo ':: problems summary ::'
echo '	Server access error at url https://repo1.maven.org/x.pom (java.net.UnknownHostException: repo1.maven.org)'
echo 'impossible to get artifacts: java.lang.RuntimeException'
exit 1
"""


def test_fetched_once_with_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    steps: list[Step] = []
    folder = jars.fetch(tmp_path / "cache", steps.append)
    assert folder == tmp_path / "cache" / "kafka-4.3.1"
    assert jars.is_complete(tmp_path / "cache")
    assert sorted(file.name for file in folder.iterdir()) == sorted([".complete", *jars.NEEDED])
    assert [(step.done, step.total) for step in steps] == [(None, None), (1, 3), (2, 3), (3, 3), (3, 3)]

    fake_java(tmp_path / "bin", monkeypatch, FAILS)
    assert jars.fetch(tmp_path / "cache") == folder, "what is complete is not fetched again"


def test_a_broken_download_never_looks_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, FAILS)
    with pytest.raises(EngineError) as caught:
        jars.fetch(tmp_path / "cache")
    said = str(caught.value)
    assert "not to be had from Maven Central: https://repo1.maven.org/x.pom" in said
    assert "UnknownHostException: repo1.maven.org" in said
    assert "\n" not in said
    assert not jars.is_complete(tmp_path / "cache")
    assert [file for file in (tmp_path / "cache").iterdir() if file.name.startswith("kafka")] == []


def test_an_incomplete_folder_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = jars.jar_folder(tmp_path / "cache")
    folder.mkdir(parents=True)
    (folder / "old.jar").write_text("half")
    (folder / ".complete").write_text("of other jars\n")
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    jars.fetch(tmp_path / "cache")
    assert not (folder / "old.jar").exists()
    assert jars.is_complete(tmp_path / "cache")


def test_jars_that_ivy_forgot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS.replace(" kafka-tools kafka-clients; do", "; do"))
    with pytest.raises(EngineError, match=r"kafka-tools-4\.3\.1\.jar, kafka-clients-4\.3\.1\.jar did not come"):
        jars.fetch(tmp_path / "cache")


def test_no_pyspark_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"pip install 'millstream\[kafka\]'"):
        jars.fetch(tmp_path / "cache")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(EngineError, match=r"cannot be written.*MILLSTREAM_CACHE"):
        jars.fetch(tmp_path / "file" / "cache")


def test_where_the_cache_is() -> None:
    assert jars.default_cache({"MILLSTREAM_CACHE": "/a"}) == Path("/a")
    assert jars.default_cache({"XDG_CACHE_HOME": "/b"}).parts[-1] == "millstream"

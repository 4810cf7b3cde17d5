"""Fetching jars with a fake Ivy: complete or not at all, the reason in one line, and a declaration Ivy understands."""

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from millstream.jvm import maven
from millstream.jvm.errors import JvmError
from millstream.jvm.maven import JarSet
from millstream.jvm.progress import Step
from support.fake_java import fake_java

MILL = JarSet(
    name="mill-1.0",
    title="The Mill 1.0",
    dependencies=("org.mill:wheel_2.13:1.0", "org.mill:stones:2.0"),
    excludes=("org.dust", "org.chaff:husk"),
    overrides=("org.mill:axle:0.9",),
    needed=("axle-0.9.jar",),
    extra="mill",
)
# The last argument is the pattern of the files to be written.
WORKS = """
for last in "$@"; do :; done
echo '	found org.mill#wheel_2.13;1.0 in public'
echo '	found org.mill#stones;2.0 in public'
echo '	found org.mill#axle;0.9 in public'
for name in wheel_2.13-1.0 stones-2.0 axle-0.9; do
  echo jar > "$(dirname "$last")/$name.jar"
  echo "	[SUCCESSFUL ] org.mill#$name!$name.jar (20ms)"
done
echo jar > "$(dirname "$last")/axle-0.9-sources.jar"
"""
FAILS = """
for last in "$@"; do :; done
echo half > "$(dirname "$last")/wheel_2.13-1.0.jar"
echo ':: problems summary ::'
echo '	Server access error at url https://repo1.maven.org/x.pom (java.net.UnknownHostException: repo1.maven.org)'
echo 'impossible to get artifacts: java.lang.RuntimeException'
exit 1
"""


def test_fetched_once_with_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    steps: list[Step] = []
    folder = maven.fetch(MILL, tmp_path / "cache", steps.append)
    assert folder == tmp_path / "cache" / "mill-1.0"
    assert maven.is_complete(MILL, tmp_path / "cache")
    assert sorted(file.name for file in folder.iterdir()) == sorted([".complete", *MILL.needed_jars()])
    assert [(step.done, step.total) for step in steps] == [(None, None), (1, 3), (2, 3), (3, 3), (3, 3)]
    assert {step.text for step in steps} == {"fetching The Mill 1.0 from Maven Central"}

    fake_java(tmp_path / "bin", monkeypatch, FAILS)
    assert maven.fetch(MILL, tmp_path / "cache") == folder, "what is complete is not fetched again"


def test_a_broken_download_never_looks_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, FAILS)
    with pytest.raises(JvmError) as caught:
        maven.fetch(MILL, tmp_path / "cache")
    said = str(caught.value)
    assert "the jars of The Mill 1.0 are not to be had from Maven Central: https://repo1.maven.org/x.pom" in said
    assert "UnknownHostException: repo1.maven.org" in said
    assert "\n" not in said
    assert not maven.is_complete(MILL, tmp_path / "cache")
    assert [file for file in (tmp_path / "cache").iterdir() if file.name.startswith("mill")] == []


def test_another_set_of_jars_under_the_same_name_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    folder = maven.fetch(MILL, tmp_path / "cache")
    (folder / "old.jar").write_text("of the other set")
    other = dataclasses.replace(MILL, excludes=())
    assert not maven.is_complete(other, tmp_path / "cache")
    assert maven.fetch(other, tmp_path / "cache") == folder
    assert not (folder / "old.jar").exists()
    assert maven.is_complete(other, tmp_path / "cache")


def test_jars_that_ivy_forgot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS.replace(" stones-2.0 axle-0.9; do", "; do"))
    with pytest.raises(JvmError, match=r"stones-2\.0\.jar, axle-0\.9\.jar did not come"):
        maven.fetch(MILL, tmp_path / "cache")


def test_no_pyspark_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JvmError, match=r"pip install 'millstream\[mill\]'"):
        maven.fetch(MILL, tmp_path / "cache")


def test_no_java_says_what_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JvmError, match=r"The Mill 1\.0 needs Java"):
        maven.fetch(MILL, tmp_path / "cache")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", monkeypatch, WORKS)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(JvmError, match=r"cannot be written.*MILLSTREAM_CACHE"):
        maven.fetch(MILL, tmp_path / "file" / "cache")


def test_where_the_cache_is() -> None:
    assert maven.default_cache({"MILLSTREAM_CACHE": "/a"}) == Path("/a")
    assert maven.default_cache({"XDG_CACHE_HOME": "/b"}).parts[-1] == "millstream"


def test_the_declaration_for_ivy() -> None:
    dependencies = ElementTree.fromstring(MILL.ivy_file()).find("dependencies")
    assert dependencies is not None
    said = [(child.tag, {**child.attrib, "conf": "-"}) for child in dependencies]
    assert said == [
        ("dependency", {"org": "org.mill", "name": "wheel_2.13", "rev": "1.0", "conf": "-"}),
        ("dependency", {"org": "org.mill", "name": "stones", "rev": "2.0", "conf": "-"}),
        ("exclude", {"org": "org.dust", "conf": "-"}),
        ("exclude", {"org": "org.chaff", "module": "husk", "conf": "-"}),
        ("override", {"org": "org.mill", "module": "axle", "rev": "0.9", "conf": "-"}),
    ]

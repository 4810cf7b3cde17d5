"""Finding a Java that will do, and what is said when there is none."""

from pathlib import Path

import pytest

from millstream.jvm.errors import JvmError
from millstream.jvm.java import find_java
from support.fake_java import fake_java


def test_no_java_says_what_needs_it_and_what_to_install() -> None:
    with pytest.raises(JvmError, match=r"^Cassandra needs Java.*install Java 17 or newer.*openjdk-17"):
        find_java("Cassandra", {"PATH": ""})


@pytest.mark.parametrize(("version", "shown"), [("1.8.0_392", "Java 8"), ("11.0.2", "Java 11")])
def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, shown: str) -> None:
    java = fake_java(tmp_path, monkeypatch, version=version)
    with pytest.raises(JvmError, match=f"{java} is {shown}, and Apache Kafka needs 17"):
        find_java("Apache Kafka")


def test_java_home_is_asked_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "path", monkeypatch, version="11.0.2")
    home = fake_java(tmp_path / "home" / "bin", monkeypatch, version="21.0.1")
    assert find_java("Spark", {"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")}) == str(home)


def test_a_java_that_does_not_say_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, monkeypatch, version="?")
    with pytest.raises(JvmError, match="does not say which Java it is"):
        find_java("Spark")

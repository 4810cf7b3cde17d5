"""Java for the tests: the class path of Apache Kafka's jars and one long-living JVM that runs tools and clients.

A JVM takes a second to start, so the tools (TopicCommand, ConsoleProducer, ...) and the Java clients run one after the
other inside a single `KafkaWorker` (see `KafkaWorker.java`), which takes one JSON object a line on its standard input
and answers each with one on its standard output. The jars come from `scripts/fetch_jars.py` (`make setup`).
"""

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from millstream.engines import jars
from millstream.jvm import maven
from millstream.jvm.maven import JarSet

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WORKER_SOURCE = Path(__file__).with_name("KafkaWorker.java")


def missing(what: str) -> None:
    """Fails in CI, skips elsewhere: a needed thing is not on this machine."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def java_executable() -> str:
    java = shutil.which("java")
    if java is None:
        missing("no `java` on the PATH: run `make setup`")
        raise AssertionError("not reached")
    return java


def kafka_cache() -> Path:
    """The cache that has Kafka's jars."""
    return cache_with(jars.KAFKA)


def cache_with(jar_set: JarSet) -> Path:
    """The cache, which has these jars; a skip (in CI a failure) where `make setup` has not fetched them."""
    cache = Path(os.environ.get(maven.CACHE_VARIABLE) or REPOSITORY / ".cache")
    if not maven.is_complete(jar_set, cache):
        missing(f"the jars of {jar_set.title} are not in the cache: run `make setup`")
    return cache


def kafka_classpath() -> str:
    """The class path with all of Kafka's jars."""
    return f"{maven.jar_folder(jars.KAFKA, kafka_cache())}/*"


def java_command(*arguments: str, heap: str = "256m", log_level: str = "warn") -> list[str]:
    """`java` with Kafka on its class path, quiet logging and the compilers set for a short life."""
    return [
        java_executable(), f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp", kafka_classpath(),
        *arguments,
    ]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a tool or a client program left behind."""

    exit_code: int
    stdout: str
    stderr: str

    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    def checked(self) -> "Outcome":
        assert self.exit_code == 0, f"exit code {self.exit_code}\n{self.stdout}\n{self.stderr}"
        return self


def run_tool(class_name: str, *arguments: str) -> Outcome:
    """Runs a tool of `org.apache.kafka.tools` in a JVM of its own: for those that do their work as the JVM ends."""
    command = java_command(f"org.apache.kafka.tools.{class_name}", *arguments)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


class KafkaWorker:
    """One JVM that runs Kafka's tools and small Java clients on request; a context manager."""

    def __init__(self) -> None:
        command = java_command(str(WORKER_SOURCE))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lock = threading.Lock()

    def __enter__(self) -> "KafkaWorker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def tool(self, class_name: str, *arguments: str, stdin: str | Iterable[str] = "") -> Outcome:
        """Runs the `main` of a tool; short names are looked up in `org.apache.kafka.tools`."""
        if "." not in class_name:
            class_name = f"org.apache.kafka.tools.{class_name}"
        text = stdin if isinstance(stdin, str) else "".join(f"{line}\n" for line in stdin)
        answer = self._ask({"tool": class_name, "args": list(arguments), "stdin": text})
        return Outcome(answer["exit"], answer["stdout"], answer["stderr"])

    def client(self, action: str, **options: Any) -> Any:
        """Runs one of the Java client scenarios of the worker (`produce`, `consume`, ...) and returns its answer."""
        answer = self._ask({"client": action, **options})
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, f"the Java worker died with exit code {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

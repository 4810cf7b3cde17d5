"""Examples as a person runs them, in this process, with what they said and what came out."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from example_kit import started_cluster
from millstream.jvm import maven
from millstream.pipelines import jars
from support.cli import Result, run
from support.java import cache_with


class Examples:
    """Runs examples; `out` is their folder, `said` the sentences of the last one."""

    def __init__(self, out: Path, where: str) -> None:
        self.out = out
        self.said = ""
        engines = {"millstream": ["--engine", "embedded"], "apache-kafka": ["--engine", "kafka"]}
        self._cluster = engines.get(where, ["--bootstrap", where])

    def __call__(self, name: str, *arguments: str) -> dict[str, Any]:
        """Runs an example that must succeed; its report."""
        result = self.run(name, *arguments)
        assert result.exit_code == 0, f"{name}: {result.stderr}"
        report: dict[str, Any] = result.json
        return report

    def run(self, name: str, *arguments: str) -> Result:
        """Runs an example to its end, whatever that is."""
        cluster = [] if "--bootstrap" in arguments or "--engine" in arguments else self._cluster
        kept: dict[str, Any] = {name: os.environ[name] for name in ("MILLSTREAM_CACHE",) if name in os.environ}
        common = ["--json", *cluster, "--out", str(self.out)]
        result = run("example", "run", name, "--", *common, *arguments, **kept)
        self.said = result.stderr
        return result


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Examples:
    """Runs examples on the cluster that `--bootstrap-servers` says: `report = example("clicks", "--seconds", "2")`."""
    return Examples(tmp_path / "out", request.config.getoption("--bootstrap-servers"))


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty cluster that outlives the example, so that a test can look into its topics."""
    where: str = request.config.getoption("--bootstrap-servers")
    with started_cluster("kafka" if where == "apache-kafka" else "embedded") as bootstrap:
        yield bootstrap


@pytest.fixture
def spark_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets examples find Spark's connectors, or skips the test where they are not on this machine."""
    monkeypatch.setenv(maven.CACHE_VARIABLE, str(cache_with(jars.SPARK)))

"""A pipeline on a Spark cluster: a standalone master and a worker, processes of their own on this machine."""

import json
import subprocess
from pathlib import Path

import pytest

from millstream.stores import SparkCluster
from support.cli import COMMAND
from support.cluster import Cluster, unique
from support.running_pipelines import Topics

PIPELINE = """
pipeline: {name}
source: {{topic: {source}, value: json, schema: "id bigint, city string"}}
steps:
  - lookup: {{name: countries, on: city, type: file, path: countries.csv, columns: "country string"}}
  - map: {{function: "steps.py:shout", returns: "id bigint, city string, country string"}}
sinks:
  - {{files: "{folder}/out", format: json}}
  - {{topic: {target}, key: id, delivery: exactly-once}}
"""
STEPS = """
def shout(row):
    return {**row, "city": row["city"].upper()}
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("command", [["run"], ["submit"]], ids=["run", "submit"])
def test_a_pipeline_runs_on_a_cluster(
    cluster: Cluster, spark_cluster: SparkCluster, tmp_path: Path, command: list[str]
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(2), unique("target")
    topics.fill(source, [{"id": number, "city": "Ulm"} for number in range(50)] + ["broken"])
    (tmp_path / "countries.csv").write_text("city,country\nUlm,Germany\n")
    (tmp_path / "steps.py").write_text(STEPS)
    file = tmp_path / "cluster.yaml"
    name = unique("cluster")
    file.write_text(PIPELINE.format(name=name, source=source, target=target, folder=tmp_path))
    arguments = ["--master", spark_cluster.url, "--bootstrap", cluster.bootstrap_servers]
    arguments += ["--home", str(tmp_path / "home"), "--once"]
    done = subprocess.run(
        [*COMMAND, "pipeline", *command, str(file), *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    written = [json.loads(line) for path in (tmp_path / "out").glob("*.json") for line in path.read_text().splitlines()]
    assert sorted(row["id"] for row in written) == list(range(50))
    assert {(row["city"], row["country"]) for row in written} == {("ULM", "Germany")}
    assert sorted(json.loads(message.value() or b"")["id"] for message in topics.all(target)) == list(range(50))
    assert [message.value() for message in topics.all(f"{name}-dead-letters")] == [b"broken"]

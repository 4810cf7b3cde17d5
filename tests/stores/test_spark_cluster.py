"""A Spark cluster of a master and a worker: a session of its own process runs a job on it, with HDFS beside it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from millstream.engines import processes
from millstream.stores import SparkCluster
from support.stores import are_gone, new_hdfs, running, within

# A process of its own: the other tests share one session, and there is one to a process.
JOB = """
import os, sys
from pyspark.sql import SparkSession
master, file_system = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
settings = {
    "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.executor.memory": "512m",
    "spark.hadoop.dfs.replication": "1",
}
builder = SparkSession.builder.master(master)
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.range(100).repartition(2).write.parquet(f"{file_system}/numbers")
read = spark.read.parquet(f"{file_system}/numbers")
print(read.count(), read.rdd.map(lambda row: row.id).sum(), len(read.inputFiles()), flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with running(SparkCluster(memory="1g")) as started:
        yield started


def state(cluster: SparkCluster) -> dict[str, object]:
    with urlopen(f"{cluster.web_url}/json/", timeout=10) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def test_a_job_runs_on_the_cluster_with_its_files_in_hdfs(cluster: SparkCluster) -> None:
    with running(new_hdfs()) as hdfs:
        command = [sys.executable, "-c", JOB, cluster.url, hdfs.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["100", "4950", "2"]
    assert state(cluster)["completedapps"], "it did not run on this cluster"


def test_its_size_and_addresses(cluster: SparkCluster) -> None:
    assert cluster.url == f"spark://127.0.0.1:{cluster.port}"
    found = state(cluster)
    assert found["url"] == cluster.url
    assert (found["cores"], found["memory"]) == (2, 1024)


def test_killed_started_and_stopped(tmp_path: Path) -> None:
    with running(SparkCluster(tmp_path)) as cluster:
        first = cluster.pids()
        assert len(first) == 2
        os.kill(next(pid for pid in first if processes.is_running(pid, "deploy.master.Master")), signal.SIGKILL)
        assert within(20, lambda: not cluster.is_running()), "a cluster without its master does not run"
        cluster.start()
        assert are_gone(first)
        assert state(cluster)["aliveworkers"] == 1
        second = cluster.pids()
    assert are_gone(second)

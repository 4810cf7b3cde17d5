"""What others want of a running pipeline: stop, restart, another mode. And records that are gone, sources that end."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines import Pipeline
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.offsets import GroupPositions
from millstream.pipelines.spark.runner import Runner
from millstream.pipelines.spark.verify import verify
from support.cluster import Cluster, unique
from support.running_pipelines import Running, Topics


def copy(source: str, target: str, end: Any = None) -> Pipeline:
    """A pipeline that copies texts from topic to topic, in micro-batches."""
    return Pipeline.model_validate(
        {
            "pipeline": unique("copy"),
            "source": {"topic": source, "value": "text", "end": end},
            "sinks": [{"topic": target, "value": "text"}],
            "mode": "micro-batch",
        }
    )


def texts(topics: Topics, topic: str, count: int | None = None) -> list[str]:
    messages = topics.all(topic) if count is None else topics.read(topic, count)
    return sorted((message.value() or b"").decode() for message in messages)


def test_a_request_in_its_folder_stops_one_pipeline_of_several(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    target = unique("target")
    first, second = copy(source, unique("target")), copy(source, target)
    home = PipelineHome(tmp_path)
    with Running([first, second], cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait(lambda status: status.state == "running", second.name)
        home.pipeline(first.name).request("stop")
        running.wait(lambda status: status.state == "stopped", first.name)
        topics.fill(source, ["after"])
        assert texts(topics, target, 1) == ["after"]
    assert running.code == 0
    assert home.pipeline(first.name).state() == "stopped"


def test_a_restart_goes_on_where_it_was(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    pipeline = copy(source, target)
    topics.fill(source, ["one"])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait_for_rows(1)
        PipelineHome(tmp_path).pipeline(pipeline.name).request("restart")
        running.wait(lambda status: status.state == "running" and status.queries[0].batch is None)
        topics.fill(source, ["two"])
        assert texts(topics, target, 2) == ["one", "two"]
    assert texts(topics, target) == ["one", "two"]


def test_a_source_that_ends_where_it_begins_is_at_its_end(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    pipeline = copy(source, target, "latest")
    assert Runner([pipeline], Connection(cluster.bootstrap_servers), PipelineHome(tmp_path), session=spark).run() == 0
    topics.fill(source, ["one"])
    for _ in range(2):  # the second time there is nothing new
        runner = Runner([pipeline], Connection(cluster.bootstrap_servers), PipelineHome(tmp_path), session=spark)
        assert runner.run() == 0
        assert texts(topics, target) == ["one"]


def test_a_pipeline_runs_once_at_a_time(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    pipeline = copy(topics.new(), unique("target"))
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait(lambda status: status.state == "running")
        other = Runner([pipeline], Connection(cluster.bootstrap_servers), PipelineHome(tmp_path), session=spark)
        with pytest.raises(PipelineError, match="runs already"):
            other.run()


def test_a_changed_mode_neither_skips_nor_repeats(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(2), unique("target")
    pipeline = copy(source, target)
    topics.fill(source, [f"a{number}" for number in range(10)])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait_for_rows(10)
    topics.fill(source, [f"b{number}" for number in range(10)])
    changed = pipeline.model_copy(update={"mode": "real-time", "real_time_batch": 5.0})
    with Running(changed, cluster.bootstrap_servers, spark, tmp_path) as running:
        topics.read(target, 20)
    assert texts(topics, target) == sorted(f"{letter}{number}" for letter in "ab" for number in range(10))


def test_records_that_are_gone_are_a_choice_not_a_skip(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    pipeline = copy(source, target)
    topics.fill(source, ["one"])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait_for_rows(1)
    topics.fill(source, ["two", "three"])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(source, 0, 2)]).values():
        future.result()
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        said = running.wait_for_failure()
    assert f"millstream pipeline reset {pipeline.name}" in said
    assert texts(topics, target) == ["one"]


def test_a_source_with_an_end_is_read_to_it_and_no_further(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    topics.fill(source, [str(number) for number in range(10)])
    pipeline = copy(source, target, end={source: {0: 7}})
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.join()
    assert running.code == 0
    assert texts(topics, target) == [str(number) for number in range(7)]


def test_once_reads_what_is_there_and_ends(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    topics.fill(source, ["a", "b"])
    pipeline = copy(source, target)
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path, once=True) as running:
        running.join()
    assert running.code == 0
    assert texts(topics, target) == ["a", "b"]
    with GroupPositions(Connection(cluster.bootstrap_servers), pipeline.group) as group:
        assert group.committed([source]) == {source: {0: 2}}


def test_a_name_that_is_sparks_own_folder_is_refused(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    pipeline = copy("any", "other").model_copy(update={"name": "warehouse"})
    runner = Runner([pipeline], Connection(cluster.bootstrap_servers), PipelineHome(tmp_path), session=spark)
    with pytest.raises(PipelineError, match="cannot be called warehouse"):
        runner.run()


def test_verify_finds_what_is_missing_doubled_and_not_expected(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), topics.new()
    pipeline = copy(source, target)
    topics.fill(source, ["a", "b", "b", "c"])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        running.wait_for_rows(4)
    connection, home = Connection(cluster.bootstrap_servers), PipelineHome(tmp_path)
    (report,) = verify(pipeline, connection, home, session=spark)
    assert (report.expected, report.found, report.agrees) == (4, 4, True)
    topics.fill(target, ["a", "x"])
    (report,) = verify(pipeline, connection, home, session=spark)
    assert (report.missing, report.doubled, report.unexpected) == (0, 1, 1)
    assert any('"a"' in example for example in report.examples)

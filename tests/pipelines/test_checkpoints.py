"""Spark's checkpoints read without Spark: texts as Spark writes them, and one that it has really written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines.checkpoints import LOCAL_FILES, Checkpoint, topic_offsets
from millstream.pipelines.errors import PipelineError
from support.cluster import Cluster
from support.pipelines import fill, new_topic, write_checkpoint

A, B = {"a": {0: 16, 1: 13}}, {"b": {0: 60}}


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path / "main"))
    assert not checkpoint.exists
    assert (checkpoint.query_id(), checkpoint.last_planned(), checkpoint.last_committed()) == (None, None, None)
    assert checkpoint.batch(0) is None
    assert checkpoint.initial(0) is None
    assert checkpoint.done() == {}


def test_batches_planned_and_done(tmp_path: Path) -> None:
    write_checkpoint(
        tmp_path / "main",
        [{"a": {0: 0, 1: 0}}, {"b": {0: 5}}],
        [[A, B], [A, None], [{"a": {0: 20, 1: 13}}, B]],
        committed=2,
    )
    checkpoint = Checkpoint(f"file://{tmp_path}/main")
    assert checkpoint.exists
    assert checkpoint.query_id() == "05887557-435a-4b1e-b82e-34bccb981516"
    assert (checkpoint.planned(), checkpoint.last_planned(), checkpoint.last_committed()) == ([0, 1, 2], 2, 1)
    batch = checkpoint.batch(2)
    assert batch is not None
    assert batch.offsets == ['{"a": {"0": 20, "1": 13}}', '{"b": {"0": 60}}']
    assert batch.topics() == {"a": {0: 20, 1: 13}, "b": {0: 60}}
    assert (batch.timestamp, batch.watermark) == (1794754945164, 0)
    assert checkpoint.done() == {"a": {0: 16, 1: 13}, "b": {0: 5}}


def test_where_a_source_stood_before_a_batch(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 3}}, {"b": {0: 5}}], [[{"a": {0: 9}}, None], [{"a": {0: 11}}, B]])
    checkpoint = Checkpoint(str(tmp_path / "main"))
    assert checkpoint.begin_of(0, 0) == '{"a": {"0": 3}}'
    assert checkpoint.begin_of(1, 0) == '{"a": {"0": 9}}'
    assert checkpoint.begin_of(1, 1) == '{"b": {"0": 5}}'  # it had nothing in the batch before


def test_plans_that_spark_has_thrown_away(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 0}}], [[{"a": {0: 90}}], [{"a": {0: 95}}]], first=41)
    checkpoint = Checkpoint(str(tmp_path / "main"))
    assert checkpoint.planned() == [41, 42]
    assert checkpoint.begin_of(42, 0) == '{"a": {"0": 90}}'
    assert checkpoint.begin_of(41, 0) is None
    assert checkpoint.batch(40) is None


def test_before_the_first_batch_topics_are_where_they_began(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 7}}], [[{"a": {0: 9, 1: 4}}]], committed=0)
    checkpoint = Checkpoint(str(tmp_path / "main"))
    assert checkpoint.last_committed() is None
    assert checkpoint.done() == {"a": {0: 7}}


def test_a_partition_that_came_later(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 7}}], [[{"a": {0: 9, 1: 4}}]])
    assert Checkpoint(str(tmp_path / "main")).done() == {"a": {0: 9, 1: 4}}


def test_two_sources_of_one_topic_count_as_the_one_behind(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 0}}, {"a": {0: 0}}], [[{"a": {0: 9}}, {"a": {0: 4}}]])
    assert Checkpoint(str(tmp_path / "main")).done() == {"a": {0: 4}}


def test_sources_that_are_no_topics(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [], [[]])
    checkpoint = Checkpoint(str(tmp_path / "main"))
    (tmp_path / "main" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "main" / "sources" / "0" / "0").write_text("v1\n1794755001267")
    (tmp_path / "main" / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":5,"batchTimestampMs":1,"conf":{}}\n17')
    batch = checkpoint.batch(0)
    assert batch is not None
    assert (batch.offsets, batch.watermark) == (["17"], 5)
    assert batch.topics() == {}
    assert checkpoint.initial(0) == "1794755001267"
    assert checkpoint.done() == {}


def test_state(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "with", [], state=True)
    write_checkpoint(tmp_path / "without", [])
    assert Checkpoint(str(tmp_path / "with")).has_state()
    assert not Checkpoint(str(tmp_path / "without")).has_state()


def test_a_format_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "main", [{"a": {0: 7}}], [[A]])
    (tmp_path / "main" / "offsets" / "0").write_text("v2\n{}\n{}")
    with pytest.raises(PipelineError, match=r"offsets/0 is written in format 'v2'"):
        Checkpoint(str(tmp_path / "main")).batch(0)


@pytest.mark.parametrize("text", ["17", "-", '"a"', "[]", "{}", '{"a": 3}', '{"a": {"x": 1}}', '{"logOffset": 3}', "{"])
def test_positions_of_other_sources(text: str) -> None:
    assert topic_offsets(text) is None


def test_local_files(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints" / "main"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text("{}")
    assert LOCAL_FILES.names(str(folder)) == ["metadata"]
    assert LOCAL_FILES.names(str(tmp_path / "nothing")) == []
    with pytest.raises(FileNotFoundError):
        LOCAL_FILES.read_text(str(folder / "nothing"))
    LOCAL_FILES.remove(str(folder))
    LOCAL_FILES.remove(str(folder))
    assert LOCAL_FILES.names(str(folder.parent)) == []


def test_a_checkpoint_of_sparks_own(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    connection = Connection(cluster.bootstrap_servers)
    topic = new_topic(connection, 2)
    fill(connection, topic, 7, partition=0)
    fill(connection, topic, 3, partition=1)
    options = {"kafka.bootstrap.servers": connection.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="5").load()
    counts: list[int] = []
    writer = rows.groupBy("partition").count().writeStream.outputMode("complete")
    writer = writer.foreachBatch(lambda batch, number: counts.append(batch.count()))
    query = writer.option("checkpointLocation", str(tmp_path / "main")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    checkpoint = Checkpoint(str(tmp_path / "main"))
    assert checkpoint.query_id() == query.id
    assert checkpoint.last_planned() == checkpoint.last_committed() == len(counts) - 1
    assert topic_offsets(checkpoint.initial(0) or "") == {topic: {0: 0, 1: 0}}
    assert checkpoint.done() == {topic: {0: 7, 1: 3}}
    assert checkpoint.has_state()
    batch = checkpoint.batch(1)
    assert batch is not None
    assert batch.timestamp > 1_600_000_000_000
    assert checkpoint.begin_of(1, 0) == (checkpoint.batch(0) or batch).offsets[0] != batch.offsets[0]

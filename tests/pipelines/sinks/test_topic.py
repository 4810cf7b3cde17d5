"""The topic sink: a batch once in a transaction, records that the topic does not take."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millstream.cluster.connection import Connection
from millstream.pipelines import Pipeline, TopicSink
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.rows import ERROR
from millstream.pipelines.spark.sinks.topic import TopicWriter, read_topic
from millstream.pipelines.spark.sinks.writer import Batch
from support.cluster import Cluster, unique
from support.running_pipelines import Topics

DELIVERIES = ("at-least-once", "exactly-once")


def writer_of(cluster: Cluster, spark: SparkSession, folder: Path, **sink: Any) -> TopicWriter:
    source = {"topic": "any", "value": "text"}
    pipeline = Pipeline.model_validate({"pipeline": unique("p"), "source": source, "sinks": [sink]})
    context = Context(spark, pipeline, Connection(cluster.bootstrap_servers), folder)
    (only,) = pipeline.sinks
    assert isinstance(only, TopicSink)
    return TopicWriter(only, context)


def batch(query: str, number: int) -> Batch:
    return Batch("p", query, "topic", number)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_rows_become_records(cluster: Cluster, spark: SparkSession, tmp_path: Path, delivery: str) -> None:
    topic = unique("target")
    headers = {"kind": "'test'"}
    writer = writer_of(cluster, spark, tmp_path, topic=topic, key="id", delivery=delivery, headers=headers)
    rows = spark.range(100).withColumn("name", F.concat(F.lit("n"), "id"))
    writer.open(rows.schema)
    assert writer.write(rows, batch(unique("query"), 0)) is None
    found = Topics(cluster.bootstrap_servers).all(topic)
    assert sorted(int(message.key() or b"") for message in found) == list(range(100))
    key = (found[0].key() or b"").decode()
    assert json.loads(found[0].value() or b"") == {"id": int(key), "name": f"n{key}"}
    assert found[0].headers() == [("kind", b"test")]
    read = read_topic(writer._sink, writer._context, rows.schema)
    assert read is not None
    assert sorted(row.asDict()["id"] for row in read.collect()) == list(range(100))


def test_a_batch_that_comes_again_is_not_written_again(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topic, query = unique("target"), unique("query")
    first = writer_of(cluster, spark, tmp_path, topic=topic, delivery="exactly-once")
    rows = spark.range(10)
    first.open(rows.schema)
    first.write(rows, batch(query, 0))
    first.write(rows, batch(query, 1))
    after_a_crash = TopicWriter(first._sink, first._context)
    after_a_crash.open(rows.schema)
    after_a_crash.write(rows, batch(query, 1))
    after_a_crash.write(rows, batch(query, 2))
    assert len(Topics(cluster.bootstrap_servers).all(topic)) == 30
    after_a_crash.write(rows, batch(unique("query"), 0))  # another checkpoint is another query
    assert len(Topics(cluster.bootstrap_servers).all(topic)) == 40


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_record_too_large_is_refused_alone(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, delivery: str
) -> None:
    topic = Topics(cluster.bootstrap_servers).new(max_message_bytes="1000")
    writer = writer_of(cluster, spark, tmp_path, topic=topic, delivery=delivery)
    rows = spark.range(3).withColumn("text", F.when(F.col("id") == 1, F.repeat(F.lit("x"), 2000)).otherwise("short"))
    writer.open(rows.schema)
    refused = writer.write(rows, batch(unique("query"), 0))
    assert refused is not None
    (row,) = refused.collect()
    assert (row["id"], row[ERROR]["error"]) == (1, "record-too-large")
    found = [json.loads(message.value() or b"")["id"] for message in Topics(cluster.bootstrap_servers).all(topic)]
    assert set(found) == {0, 2}
    assert delivery == "at-least-once" or len(found) == 2  # at least once, the others may be written twice

"""Topic to topic in real-time mode: chosen by the runner, seen by Kafka's tools, bad records aside."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines import Pipeline
from millstream.pipelines.offsets import GroupPositions
from support.cluster import Cluster, unique
from support.running_pipelines import Running, Topics


def test_a_stateless_topic_to_topic_pipeline_is_real_time(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(2), unique("target")
    pipeline = Pipeline.model_validate(
        {
            "pipeline": unique("loud"),
            "source": {"topic": source, "value": "json", "schema": "id bigint, city string"},
            "steps": [{"filter": "id % 2 = 0"}, {"sql": "SELECT id, upper(city) AS city FROM stream"}],
            "sinks": [{"topic": target, "key": "id"}],
            "real_time_batch": "5s",
        }
    )
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path) as running:
        status = running.wait(lambda status: status.state == "running")
        assert [(query.name, query.mode) for query in status.queries] == [
            (f"topic-{target}", "real-time"),
            ("dead-letters", "micro-batch"),
        ]
        topics.fill(source, [{"id": number, "city": "Ulm"} for number in range(100)] + ["no json"])
        found = topics.read(target, 50)
        assert sorted(int(message.key() or b"") for message in found) == list(range(0, 100, 2))
        assert json.loads(found[0].value() or b"")["city"] == "ULM"
        (letter,) = topics.read(pipeline.dead_letter_topic, 1)
        assert letter.value() == b"no json"
        headers = dict(letter.headers() or [])
        assert headers["millstream.pipeline"] == pipeline.name.encode()
        assert headers["millstream.origin.topic"] == source.encode()
        running.wait(lambda status: all(query.rows >= 101 for query in status.queries))
    with GroupPositions(Connection(cluster.bootstrap_servers), pipeline.group) as group:
        assert sum(group.committed([source])[source].values()) == 101


def test_after_a_clean_stop_it_goes_on_where_it_was(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source, target = topics.new(), unique("target")
    pipeline = Pipeline.model_validate(
        {
            "pipeline": unique("copy"),
            "source": {"topic": source, "value": "text"},
            "sinks": [{"topic": target, "value": "text"}],
            "real_time_batch": "5s",
        }
    )
    for part in range(2):
        topics.fill(source, [f"{part}-{number}" for number in range(20)])
        with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path):
            topics.read(target, 20 * (part + 1))
    values = [(message.value() or b"").decode() for message in topics.all(target)]
    assert sorted(values) == sorted(f"{part}-{number}" for part in range(2) for number in range(20))

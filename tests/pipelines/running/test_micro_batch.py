"""Micro-batches: sinks that share one read of the source, state, bad records, restarts."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from millstream.pipelines import Pipeline
from millstream.pipelines.status import PipelineStatus
from support.cluster import Cluster, unique
from support.running_pipelines import Running, Topics


def pipeline_of(**fields: Any) -> Pipeline:
    return Pipeline.model_validate({"pipeline": unique("pipeline"), **fields})


def rows_of(file: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def lines_of(folder: Path) -> list[Any]:
    """The JSON lines of a files sink."""
    return [json.loads(line) for file in folder.rglob("[!_.]*.json") for line in file.read_text().splitlines()]


def test_sinks_share_one_read_and_each_gets_its_part(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new(2)
    pipeline = pipeline_of(
        source={"topic": source, "value": "json", "schema": "id bigint, city string"},
        steps=[{"add": {"even": "id % 2 = 0"}}],
        sinks=[
            {"database": f"sqlite:///{tmp_path}/out.db", "table": "cities", "where": "even", "select": ["id", "city"]},
            {"files": f"{tmp_path}/files", "format": "json", "partition_by": ["city"]},
        ],
    )
    topics.fill(source, [{"id": number, "city": "Ulm" if number < 5 else "Bonn"} for number in range(10)])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        status = running.wait_for_rows(10)
        assert [(query.name, query.mode) for query in status.queries] == [("main", "micro-batch")]
    assert status.queries[0].rows == 10
    rows = rows_of(tmp_path / "out.db", "SELECT id, city FROM cities ORDER BY id")
    assert rows == [(0, "Ulm"), (2, "Ulm"), (4, "Ulm"), (6, "Bonn"), (8, "Bonn")]
    assert sorted(line["id"] for line in lines_of(tmp_path / "files" / "city=Ulm")) == [0, 1, 2, 3, 4]
    assert sorted(line["id"] for line in lines_of(tmp_path / "files" / "city=Bonn")) == [5, 6, 7, 8, 9]


def test_bad_records_go_aside_and_the_stream_goes_on(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    pipeline = pipeline_of(
        source={"topic": source, "value": "json", "schema": "id bigint, amount string"},
        steps=[{"cast": {"amount": "decimal(10,2)"}}],
        sinks=[{"database": f"sqlite:///{tmp_path}/out.db", "table": "sums", "select": ["id"]}],
    )
    topics.fill(
        source, [{"id": 1, "amount": "2.50"}, "{not json", {"id": 2, "amount": "many"}, {"id": 3, "amount": "1"}]
    )
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        status = running.wait(lambda status: status.queries and status.queries[0].dead_letters == 2)
    assert status.state == "running"
    assert rows_of(tmp_path / "out.db", "SELECT id FROM sums ORDER BY id") == [(1,), (3,)]
    letters = topics.read(pipeline.dead_letter_topic, 2)
    by_offset = {dict(letter.headers() or [])["millstream.origin.offset"]: letter for letter in letters}
    assert set(by_offset) == {b"1", b"2"}
    assert by_offset[b"1"].value() == b"{not json"
    assert "amount" in str(dict(by_offset[b"2"].headers() or [])["millstream.message"])


def test_on_error_fail_stops_the_pipeline_and_says_why(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    pipeline = pipeline_of(
        source={"topic": source, "value": "json", "schema": "id bigint"},
        sinks=[{"files": f"{tmp_path}/files", "format": "json"}],
        on_error="fail",
    )
    topics.fill(source, ["{not json"])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        assert "`on_error: fail`, and a record is bad" in running.wait_for_failure()
    assert running.code == 1


def test_running_counts_are_kept_over_a_restart(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    database = tmp_path / "out.db"
    pipeline = pipeline_of(
        source={"topic": source, "value": "text"},
        steps=[
            {"sql": "SELECT explode(split(value, ' ')) AS word FROM stream"},
            {"aggregate": {"by": "word", "compute": {"n": "count(*)"}}},
        ],
        sinks=[{"database": f"sqlite:///{database}", "table": "words", "key": "word"}],
    )
    for _ in range(2):
        topics.fill(source, ["to be or not to be"])
        with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
            status = running.wait_for_rows(1)
    assert rows_of(database, "SELECT word, n FROM words ORDER BY word") == [("be", 4), ("not", 2), ("or", 2), ("to", 4)]
    assert status.queries[0].state_rows == 4
    assert "an aggregation keeps state" not in status.queries[0].why  # a database takes batches anyway


def test_late_rows_are_counted(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    pipeline = pipeline_of(
        source={"topic": source, "value": "json", "schema": "time timestamp"},
        steps=[
            {"watermark": {"column": "time", "delay": "1 minute"}},
            {"aggregate": {"window": {"column": "time", "size": "1 minute"}, "compute": {"n": "count(*)"}}},
        ],
        sinks=[{"files": f"{tmp_path}/files", "format": "json"}],
    )
    topics.fill(source, [{"time": "2026-01-01T12:00:10Z"}, {"time": "2026-01-01T12:10:00Z"}])
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        running.wait_for_rows(2, "main")
        running.wait(lambda status: lines_of(tmp_path / "files"))
        topics.fill(source, [{"time": "2026-01-01T12:00:20Z"}])
        running.wait(lambda status: status.queries[0].late_rows == 1)
    (line,) = lines_of(tmp_path / "files")
    assert (line["window_start"], line["n"]) == ("2026-01-01T12:00:00.000000Z", 1)


def test_a_mistake_in_one_pipeline_does_not_disturb_another(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topics = Topics(cluster.bootstrap_servers)
    source = topics.new()
    sink = {"files": f"{tmp_path}/files", "format": "json"}
    good = pipeline_of(source={"topic": source, "value": "text"}, sinks=[sink])
    bad = pipeline_of(source={"topic": source, "value": "text"}, steps=[{"filter": "no_such > 1"}], sinks=[sink])
    topics.fill(source, ["a"])

    def through(status: PipelineStatus) -> bool:
        return bool(status.queries) and status.queries[0].rows == 1

    with Running([bad, good], cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        running.wait(through, good.name)
        running.runner.stop()
        running.join()
    assert running.code == 1
    (failed,) = [status for status in running.runner.snapshot() if status.name == bad.name]
    assert failed.state == "failed"
    assert "no_such" in (failed.error or "")

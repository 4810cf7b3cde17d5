"""The samples in the pages about sinks are run, to the end of their rows, and the sinks have what the pages say."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cassandra.cluster import Cluster as CassandraClient
from pyspark.sql import SparkSession

from millstream.pipelines import read
from millstream.stores import Cassandra
from support.cluster import Cluster
from support.doc_samples import Sample, pipeline_samples
from support.running_pipelines import Running, Topics

ELSEWHERE = ("orders-to-lake",)
"""These name a metastore and a store of others."""
SAMPLES = [
    sample
    for sample in pipeline_samples()
    if sample.page.parent.name == "sinks" and not any(name in sample.text for name in ELSEWHERE)
]


class Outputs:
    """What a sample has written."""

    def __init__(self, folder: Path, spark: SparkSession, topics: Topics, cassandra: Cassandra | None) -> None:
        self.folder = folder
        self.spark = spark
        self.topics = topics
        self._cassandra = cassandra

    def sqlite(self, query: str) -> int:
        with closing(sqlite3.connect(self.folder / "orders.db")) as connection:
            return int(connection.execute(query).fetchone()[0])

    def in_cassandra(self, query: str) -> int:
        assert self._cassandra is not None
        client = CassandraClient([self._cassandra.host], port=self._cassandra.port)
        try:
            return int(client.connect().execute(query).one()[0])
        finally:
            client.shutdown()


COUNTS: dict[str, Callable[[Outputs], list[int]]] = {
    "loud": lambda out: [len(out.topics.all("loud"))],
    "look": lambda out: [],
    "orders-to-database": lambda out: [
        out.sqlite("SELECT count(*) FROM orders"),
        out.sqlite("SELECT count(*) FROM last_order"),
    ],
    "orders-to-files": lambda out: [out.spark.read.parquet(str(out.folder / "orders")).count()],
    "orders-to-table": lambda out: [out.spark.table("warehouse.orders").count()],
    "readings-to-cassandra": lambda out: [out.in_cassandra("SELECT count(*) FROM plant.readings")],
}
EXPECTED = {
    "loud": [100],
    "look": [],
    "orders-to-database": [300, 3],
    "orders-to-files": [300],
    "orders-to-table": [300],
    "readings-to-cassandra": [300],
}


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_samples_run(
    sample: Sample,
    cluster: Cluster,
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cassandra: Cassandra | None = request.getfixturevalue("cassandra") if "cassandra:" in sample.text else None
    text = sample.text if cassandra is None else sample.text.replace("127.0.0.1:9042", f"127.0.0.1:{cassandra.port}")
    file = tmp_path / "sample.yaml"
    file.write_text(text)
    (pipeline,) = read(file)
    with Running(pipeline, cluster.bootstrap_servers, spark, tmp_path / "home") as running:
        running.join()
    assert running.code == 0
    outputs = Outputs(tmp_path, spark, Topics(cluster.bootstrap_servers), cassandra)
    assert COUNTS[pipeline.name](outputs) == EXPECTED[pipeline.name]
    if pipeline.name == "look":
        assert capsys.readouterr().out.count('"square"') == 10

"""What the tests of sources share: a log, a pipeline's context, and streams that are run until all is read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import ConsoleSink
from millstream.pipelines.description.sources import GeneratorSource
from millstream.pipelines.spark.context import Context
from support.cluster import Cluster


@pytest.fixture
def connection(cluster: Cluster) -> Connection:
    return Connection(cluster.bootstrap_servers)


@pytest.fixture
def context(spark: SparkSession, connection: Connection, tmp_path: Path) -> Context:
    """The context of a pipeline whose source does not matter: readers get theirs apart."""
    pipeline = Pipeline(name="test", source=GeneratorSource(generate={"n": "id"}), sinks=[ConsoleSink()])
    return Context(spark, pipeline, connection, tmp_path / "folder")


Read = Callable[[DataFrame], list[Row]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Runs a stream until all that is there is read, and returns its rows. The same test goes on where it was."""

    def run(rows: DataFrame) -> list[Row]:
        found: list[Row] = []
        query = (
            rows.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return found

    return run

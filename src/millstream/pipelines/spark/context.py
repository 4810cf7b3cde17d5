"""What every part of a running pipeline is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.spark.java_client import java_properties


@dataclass(frozen=True)
class Context:
    """One pipeline in one Spark session, on one cluster."""

    spark: SparkSession
    pipeline: Pipeline
    connection: Connection
    folder: Path
    """The pipeline's own folder on this machine: what was inferred, run state; not the checkpoints if those are
    remote."""

    def cluster(self, bootstrap: str | None) -> Connection:
        """The pipeline's cluster, or another that a source or sink names."""
        return self.connection if bootstrap is None else Connection(bootstrap)

    def kafka_options(self, bootstrap: str | None = None) -> dict[str, str]:
        """The options of Spark's Kafka source and sink that say where the cluster is."""
        connection = self.cluster(bootstrap)
        options = {f"kafka.{name}": value for name, value in java_properties(connection.properties).items()}
        return {"kafka.bootstrap.servers": connection.bootstrap, **options}

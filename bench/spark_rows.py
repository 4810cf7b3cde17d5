"""The rows on Spark: the same session reads from each server in turn."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from bench import loads
from bench.rows import THROUGHPUT, Figure, Measured, Row, Scale
from bench.systems import System
from millstream.pipelines import jars
from millstream.pipelines.spark.session import start_session

_PARTITIONS = 2


@cache
def _session() -> SparkSession:
    return start_session([], jars.fetch(), Path(tempfile.mkdtemp(prefix="millstream-bench-spark-")))


def _options(system: System, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": system.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}


@dataclass(frozen=True)
class _SparkRow(Row):
    size: int
    records: int
    figures: ClassVar[dict[str, Figure]] = THROUGHPUT
    for_peers: ClassVar[bool] = False
    warm_up: ClassVar[int] = 4  # Spark itself gets faster from round to round, whoever it reads from

    def prepare(self, system: System, scale: Scale) -> Any:
        _session()
        topic = loads.new_topic(system.bootstrap, _PARTITIONS)
        loads.produce(
            system.bootstrap, topic, size=self.size, records=scale.of(self.records), partitions=_PARTITIONS,
            settings={"acks": 1},
        )  # fmt: skip
        return topic

    def clean_up(self, system: System, prepared: Any) -> None:
        loads.delete_topic(system.bootstrap, prepared)

    def measure(self, system: System, scale: Scale, prepared: Any) -> Measured:
        records = loads.count(system.bootstrap, prepared, _PARTITIONS)
        begin = perf_counter()
        found = self.run(system, prepared)
        seconds = perf_counter() - begin
        if found != records:
            raise loads.Failed(f"Spark saw {found} of {records} records")
        return Measured({"throughput": records / seconds}, records * self.size)

    def run(self, system: System, topic: str) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class SparkBatch(_SparkRow):
    """All records read, their bytes counted."""

    def run(self, system: System, topic: str) -> int:
        rows: DataFrame = _session().read.format("kafka").options(**_options(system, topic)).load()
        counted = rows.selectExpr("count(*)", "sum(length(value))").first()
        assert counted is not None
        return int(counted[0])


@dataclass(frozen=True)
class SparkCopy(_SparkRow):
    """From topic to topic, as a stream."""

    def run(self, system: System, topic: str) -> int:
        target = loads.new_topic(system.bootstrap, _PARTITIONS)
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as checkpoint:
            rows = _session().readStream.format("kafka").options(**_options(system, topic)).load()
            query = (
                rows.select("key", "value")
                .writeStream.format("kafka")
                .options(**{"kafka.bootstrap.servers": system.bootstrap, "topic": target})
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        found = loads.count(system.bootstrap, target, _PARTITIONS)
        loads.delete_topic(system.bootstrap, target)
        return found


SPARK_ROWS: tuple[Row, ...] = (
    SparkBatch("Spark batch read, 1 kB", 1_000, 600_000),
    SparkCopy("Spark streaming copy, 1 kB", 1_000, 200_000),
)

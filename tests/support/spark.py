"""One Spark session for all tests that need one: starting it takes six seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from millstream.pipelines import jars
from millstream.pipelines.spark.session import start_session
from support.java import cache_with

SLOTS_FOR_REAL_TIME = 6


@contextmanager
def running_spark(home: Path) -> Iterator[SparkSession]:
    """A local session as pipelines get it, in a folder of its own."""
    found = jars.fetch(cache_with(jars.SPARK))
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(home / "warehouse")}
    spark = start_session([], found, home, real_time_slots=SLOTS_FOR_REAL_TIME, conf=conf)
    try:
        yield spark
    finally:
        spark.stop()

"""Spark's jars: none is there twice, and the Avro module, which is of another version, works with this Spark."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from millstream.jvm.maven import pyspark_home
from millstream.pipelines import jars
from support.java import cache_with

SCHEMA = """{"type": "record", "name": "click", "fields": [
  {"name": "campaign", "type": "int"}, {"name": "country", "type": ["null", "string"]},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
  {"name": "tags", "type": {"type": "array", "items": "string"}}]}"""
CLICK = (
    "SELECT 7 AS campaign, 'Schweden' AS country, timestamp'2026-01-02 03:04:05.678901' AS at, "
    "CAST(12.34 AS decimal(9, 2)) AS price, array('a', 'b') AS tags"
)


def artifact(jar: Path) -> str:
    return re.sub(r"-\d[^/]*\.jar$", "", jar.name)


def test_none_of_them_is_in_pysparks_own_folder() -> None:
    home = pyspark_home()
    assert home is not None
    own = {artifact(jar) for jar in (home / "jars").glob("*.jar")}
    found = [artifact(jar) for jar in jars.fetch(cache_with(jars.SPARK))]
    assert len(set(found)) == len(found)
    assert not own & set(found)
    assert {"kafka-clients", "mariadb-java-client", "postgresql", "sqlite-jdbc"} <= set(found)


def test_avro_to_bytes_and_back(spark: SparkSession) -> None:
    rows = spark.sql(CLICK)
    encoded = rows.select(to_avro(F.struct("*"), SCHEMA).alias("value"))
    assert encoded.select(from_avro("value", SCHEMA).alias("v")).select("v.*").collect() == rows.collect()


def test_broken_avro_is_null_on_request(spark: SparkSession) -> None:
    broken = spark.createDataFrame([(b"\x0e\x02",)], "value binary")
    (row,) = broken.select(from_avro("value", SCHEMA, {"mode": "PERMISSIVE"}).alias("v")).select("v.*").collect()
    assert set(row) == {None}


def test_avro_files(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(CLICK)
    rows.write.format("avro").option("avroSchema", SCHEMA).save(str(tmp_path / "avro"))
    assert spark.read.format("avro").load(str(tmp_path / "avro")).collect() == rows.collect()


@pytest.mark.parametrize("driver", ["org.mariadb.jdbc.Driver", "org.postgresql.Driver", "org.sqlite.JDBC"])
def test_drivers_are_in_the_session(spark: SparkSession, driver: str) -> None:
    loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]  # there is a JVM
    assert loader.loadClass(driver).getName() == driver

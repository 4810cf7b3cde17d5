"""Tables beside the stream: what is in them, when they are read again, and what is told."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from millstream.cluster.connection import Connection
from millstream.cluster.topics import add_partitions, create_topic
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.sinks import ConsoleSink
from millstream.pipelines.description.sources import GeneratorSource, Table
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.tables import RefreshingTable
from support.cluster import Cluster, unique


@pytest.fixture
def context(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Context:
    pipeline = Pipeline(name="test", source=GeneratorSource(generate={"n": "id"}), sinks=[ConsoleSink()])
    return Context(spark, pipeline, Connection(cluster.bootstrap_servers), tmp_path / "folder")


def topic(context: Context, **configs: str) -> str:
    name = unique("table")
    create_topic(context.connection, name, partitions=1, configs={"retention.ms": "-1", **configs})
    return name


def produce(context: Context, topic: str, *records: tuple[str | None, Any], partition: int = 0, **more: Any) -> None:
    producer = Producer({"bootstrap.servers": context.connection.bootstrap})
    for key, value in records:
        plain = value if isinstance(value, str | None) else json.dumps(value)
        producer.produce(topic, plain, key, partition=partition, **more)
    assert producer.flush(10) == 0


def rows(table: RefreshingTable, now: float = 0.0) -> list[Row]:
    return sorted(table.frame(now).collect())


def test_the_last_value_of_each_key(context: Context) -> None:
    name = topic(context, **{"cleanup.policy": "compact"})
    produce(
        context, name, ("a", {"n": 1}), ("b", {"n": 2}), ("a", {"n": 3}), ("c", {"n": 4}), ("c", None), ("c", {"n": 5})
    )
    produce(context, name, ("b", None))
    table = RefreshingTable(Table(topic=name, schema="n bigint"), "names", context)
    assert rows(table) == [Row(key="a", n=3), Row(key="c", n=5)]
    table.close()


def test_keys_that_moved_to_another_partition(context: Context) -> None:
    name = topic(context)
    produce(context, name, ("a", {"n": 1}), ("a", {"n": 2}), timestamp=1_000_000)
    add_partitions(context.connection, name, to=2)
    produce(context, name, ("a", {"n": 3}), partition=1, timestamp=2_000_000)
    assert rows(RefreshingTable(Table(topic=name, schema="n bigint"), "names", context)) == [Row(key="a", n=3)]


def test_it_is_read_again_when_it_is_due_and_kept_meanwhile(context: Context) -> None:
    name = topic(context)
    produce(context, name, ("a", {"n": 1}))
    table = RefreshingTable(Table(topic=name, schema="n bigint", refresh="10s"), "names", context)
    first = table.frame(0.0)
    assert "InMemory" in first._jdf.queryExecution().optimizedPlan().toString()
    produce(context, name, ("a", {"n": 2}))
    assert rows(table, 9.9) == [Row(key="a", n=1)]
    assert rows(table, 10.0) == [Row(key="a", n=2)]
    assert "InMemory" not in first.select("*")._jdf.queryExecution().withCachedData().toString()
    produce(context, name, ("a", {"n": 3}))
    forever = RefreshingTable(Table(topic=name, schema="n bigint"), "forever", context)
    assert rows(forever, 0.0) == [Row(key="a", n=3)]
    produce(context, name, ("a", {"n": 4}))
    assert rows(forever, 1e9) == [Row(key="a", n=3)]


def test_values_that_do_not_decode_are_left_out_and_told(context: Context, caplog: pytest.LogCaptureFixture) -> None:
    name = topic(context)
    produce(context, name, ("a", {"n": 1}), ("b", "no json"), ("c", {"n": "x"}))
    with caplog.at_level(logging.WARNING):
        assert rows(RefreshingTable(Table(topic=name, schema="n bigint"), "names", context)) == [Row(key="a", n=1)]
    assert f"table names: 2 values of topic {name} do not decode and are left out" in caplog.text


def test_a_topics_schema_is_inferred(context: Context) -> None:
    name = topic(context)
    produce(context, name, ("a", {"n": 1}), ("b", None))
    assert rows(RefreshingTable(Table(topic=name), "names", context)) == [Row(key="a", n=1)]
    assert (context.folder / "schema-names.json").exists()


def test_a_databases_table_and_query(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE cities (code TEXT, size BIGINT, founded DATE)")
        connection.executemany("INSERT INTO cities VALUES (?, ?, ?)", [("P", 2**40, "2026-01-31"), ("L", None, None)])
        connection.commit()
        url = f"sqlite:///{file}"
        found = RefreshingTable(Table(database=url, table="cities"), "cities", context).frame()
        assert found.dtypes == [("code", "string"), ("size", "bigint"), ("founded", "date")]
        assert sorted(row["code"] for row in found.collect()) == ["L", "P"]
        query = Table(database=url, query="SELECT code FROM cities WHERE size IS NOT NULL")
        assert rows(RefreshingTable(query, "big", context)) == [Row(code="P")]
        connection.execute("INSERT INTO cities VALUES ('X', 'huge', NULL)")
        connection.commit()
        with pytest.raises(PySparkException, match="cities: size is 'huge', which is not bigint"):
            rows(RefreshingTable(Table(database=url, table="cities"), "cities", context))


def test_files(context: Context, tmp_path: Path) -> None:
    file = tmp_path / "cities.csv"
    file.write_text("code,size\nP,2\nL,9\n")
    assert rows(RefreshingTable(Table(files=str(file)), "cities", context)) == [
        Row(code="L", size=9),
        Row(code="P", size=2),
    ]
    (tmp_path / "cities.json").write_text('{"code": "P"}\n{\n')
    bad = RefreshingTable(
        Table(files=str(tmp_path / "cities.json"), format="json", schema="code string"), "bad", context
    )
    with pytest.raises(Py4JJavaError, match="MALFORMED"):
        bad.frame().collect()


def test_a_table_of_the_metastore(context: Context) -> None:
    context.spark.sql("SELECT 1 AS id").createOrReplaceTempView("known")
    assert rows(RefreshingTable(Table(table="known"), "known", context)) == [Row(id=1)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"topic": "nowhere"}, "table lost: there is no topic nowhere"),
        ({"table": "nowhere"}, "table lost: .*nowhere"),
        ({"files": "/nowhere/x.csv", "schema": "a int"}, "table lost: .*/nowhere/x.csv"),
        ({"database": "sqlite:////nowhere.db", "table": "t"}, "nowhere.db cannot be read"),
    ],
)
def test_what_is_not_there_is_told(context: Context, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        RefreshingTable(Table(**fields), "lost", context).frame()

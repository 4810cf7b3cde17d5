"""The look-up step: columns that come to the rows, and the rules."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import redis as client_library
from pyspark.sql import DataFrame, SparkSession

from millstream.pipelines.description.lookup import LookupStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.spark import modes
from millstream.stores import MariaDB, Redis
from support.cluster import unique
from support.databases import SqlDatabase
from support.steps import FileStream, applied, errors, offsets, start, static, streamed, values, with_hidden

IPS = ("64.1.2.3", "65.1.2.3", "66.1.2.3")


def lookup(**fields: Any) -> LookupStep:
    return LookupStep.model_validate({"name": "ranges", "on": "split(ip, '[.]')[0]", **fields})


def memory(**fields: Any) -> LookupStep:
    return lookup(type="memory", rows={"64": {"fraud": True}, "65": {"fraud": False}}, **fields)


def ips(spark: SparkSession, *given: str | None) -> DataFrame:
    return static(spark, "ip string", *((ip,) for ip in given or IPS))


def test_columns_are_added_and_the_key_leaves_nothing_behind(spark: SparkSession) -> None:
    found = applied(ips(spark), memory())

    assert found.columns == ["ip", "fraud", "_origin", "_error"]
    assert values(found) == [(IPS[0], True), (IPS[1], False), (IPS[2], None)]
    assert offsets(found) == [0, 1, 2]


def test_a_key_that_is_missing_or_null(spark: SparkSession) -> None:
    rows = ips(spark, *IPS, None)

    assert values(applied(rows, memory(missing="drop"))) == [(IPS[0], True), (IPS[1], False)]
    aside = applied(rows, memory(missing="dead-letter"))
    assert values(aside) == [(IPS[0], True), (IPS[1], False)]
    assert [tuple(error) for error in errors(aside)] == [
        (2, "ranges", "lookup-missing", "there is no key '66' in ranges"),
        (3, "ranges", "lookup-missing", "the key is null"),
    ]


def test_columns_that_the_rows_have_already_are_refused(spark: SparkSession) -> None:
    rows = static(spark, "ip string, FRAUD int", ("64.1.1.1", 1))

    with pytest.raises(PipelineError, match="look-up ranges adds the column fraud, which the rows have already"):
        applied(rows, memory())
    with pytest.raises(PipelineError, match="`nothing` cannot be resolved"):
        applied(ips(spark), LookupStep.model_validate({**memory().model_dump(), "on": "nothing"}))


def test_a_file_and_its_change_between_two_batches(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "ranges.csv"
    file.write_text("range,fraud\n64,true\n")
    step = lookup(type="file", path=str(file), refresh=0, columns="fraud boolean")
    found: list[list[tuple[object, ...]]] = []

    def handle(batch: DataFrame, _: int) -> None:
        found.append(values(applied(batch, step)))
        file.write_text("range,fraud\n64,false\n65,true\n")

    stream = FileStream(spark, tmp_path, "ip string", [{"ip": IPS[0]}], [{"ip": IPS[0]}])
    start(stream.rows, handle, tmp_path / "checkpoint").awaitTermination()

    assert found == [[(IPS[0], True)], [(IPS[0], False)]]


@pytest.mark.parametrize(
    ("away", "expected", "bad"),
    [
        ("stale", [(IPS[0], True), (IPS[1], False), (IPS[2], None)], 0),
        ("null", [(IPS[0], None), (IPS[1], None), (IPS[2], None)], 0),
        ("dead-letter", [], 3),
    ],
)
def test_a_file_that_goes_away(
    spark: SparkSession, tmp_path: Path, away: str, expected: list[tuple[object, ...]], bad: int
) -> None:
    file = tmp_path / "ranges.csv"
    file.write_text("range,fraud\n64,true\n65,false\n")
    step = lookup(type="file", path=str(file), refresh=0, away=away, missing="null")
    applied(ips(spark), step)

    file.unlink()
    found = applied(ips(spark), step)

    assert values(found) == expected
    assert [error.error for error in errors(found)] == ["lookup-away"] * bad


def test_a_file_that_goes_away_can_stop_the_pipeline_and_must_be_there_at_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "ranges.csv"
    step = lookup(type="file", path=str(file), refresh=0, away="fail")
    with pytest.raises(PipelineError, match=r"look-up ranges: .*ranges\.csv cannot be read"):
        applied(ips(spark), step)
    file.write_text("range,fraud\n64,true\n")
    applied(ips(spark), step)

    file.unlink()

    with pytest.raises(PipelineError, match=r"p.yaml:7: .*look-up ranges: .*ranges.csv cannot be read"):
        applied(ips(spark), step)


def test_look_ups_in_memory_and_files_can_be_done_in_real_time(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "ranges.csv"
    file.write_text("range,fraud\n64,true\n")
    stream = with_hidden(spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS ip"))

    for step in (memory(), lookup(type="file", path=str(file))):
        assert modes._refusal_of_plan(applied(stream, step)) is None


def test_a_database_with_its_own_types(spark: SparkSession, tmp_path: Path) -> None:
    database = SqlDatabase(f"sqlite:///{tmp_path}/d.db")
    database.run("CREATE TABLE ranges (id INTEGER PRIMARY KEY, fraud BOOLEAN, since DATE, weight DOUBLE)")
    database.run("INSERT INTO ranges VALUES (64, 1, '2024-02-29', 0.5), (65, 0, NULL, NULL)")

    found = applied(ips(spark, *IPS, "x.1", None), lookup(type="sql", database=database.url, table="ranges"))

    assert found.schema.simpleString().startswith("struct<ip:string,fraud:boolean,since:date,weight:double,_origin:")
    assert [tuple(map(str, row[1:])) for row in values(found)] == [
        ("True", "2024-02-29", "0.5"), ("False", "None", "None"), *[("None", "None", "None")] * 3,
    ]  # fmt: skip
    assert offsets(found) == [0, 1, 2, 3, 4]


def test_a_mistake_about_the_database_is_told_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    database = SqlDatabase(f"sqlite:///{tmp_path}/d.db")
    database.run("CREATE TABLE ranges (id INTEGER, fraud BOOLEAN)")

    for fields, message in (
        ({"table": "rangs"}, "rangs"),
        ({"table": "ranges", "key": "nr"}, "there is no column nr; there are id, fraud"),
        ({"table": "ranges", "columns": "frod boolean"}, "there is no column frod"),
    ):
        with pytest.raises(PipelineError, match=message):
            applied(ips(spark), lookup(type="sql", database=database.url, **fields))


def test_redis_with_the_rules_for_what_is_missing_or_cannot_be_used(spark: SparkSession, redis: Redis) -> None:
    prefix = unique("ips")
    with client_library.Redis.from_url(redis.url) as client:
        client.hset(f"{prefix}:64", mapping={"fraud": "true", "n": "5"})
        client.set(f"{prefix}:65", json.dumps({"fraud": False, "tags": ["x", "y"]}))
        client.hset(f"{prefix}:66", mapping={"n": "many"})
        client.set(f"{prefix}:67", "no JSON")
    step = lookup(
        type="redis", url=redis.url, prefix=f"{prefix}:", columns="fraud boolean, n int, tags array<string>",
        missing="dead-letter",
    )  # fmt: skip

    found = applied(ips(spark, *(f"{number}.1" for number in range(64, 69))), step)

    assert values(found) == [("64.1", True, 5, None), ("65.1", False, None, ["x", "y"])]
    assert [(error.offset, error.error, error.message) for error in errors(found)] == [
        (2, "lookup-value", "column n: 'many' is not a value of type int"),
        (3, "lookup-value", "key '67' of ranges: it is a string without a JSON object in it"),
        (4, "lookup-missing", "there is no key '68' in ranges"),
    ]
    assert values(applied(ips(spark, "68.1", "64.1"), lookup(
        type="redis", url=redis.url, prefix=f"{prefix}:", columns="fraud boolean", missing="drop"
    ))) == [("64.1", True)]  # fmt: skip


def test_a_store_that_goes_away_in_mid_run(spark: SparkSession, redis: Redis, tmp_path: Path) -> None:
    """Answers are remembered in the workers; what is not is for the rule to decide."""
    prefix = unique("away")
    with client_library.Redis.from_url(redis.url) as client:
        client.hset(f"{prefix}:64", mapping={"fraud": "true"})
    common = {"type": "redis", "url": redis.url, "prefix": f"{prefix}:", "columns": "fraud boolean"}
    aside, null, stale = (
        lookup(**common, name=away, away=away, refresh=0) for away in ("dead-letter", "null", "stale")
    )
    rows = ips(spark, "64.1")
    for step in (aside, null):
        assert values(applied(rows, step)) == [("64.1", True)]
    everywhere = ips(spark, *["64.1"] * 64).repartition(32)  # whichever worker is asked later, it knows
    assert values(applied(everywhere, stale)) == [("64.1", True)] * 64

    redis.kill()
    try:
        assert values(applied(rows, stale)) == [("64.1", True)]
        assert values(applied(rows, null)) == [("64.1", None)]
        (error,) = errors(applied(rows, aside))
        assert (error.stage, error.error) == ("dead-letter", "lookup-away")
        assert f"key '64' of dead-letter: redis://127.0.0.1:{redis.port}/0 does not answer" in error.message
        (unknown,) = errors(applied(ips(spark, "99.1"), stale))
        assert unknown.error == "lookup-away"
        with pytest.raises(Exception, match="does not answer"):
            applied(rows, lookup(**common, away="fail", refresh=0)).collect()
    finally:
        redis.start()


def test_a_stream_waits_for_a_store_that_is_away(spark: SparkSession, mariadb: MariaDB, tmp_path: Path) -> None:
    database, table = SqlDatabase(mariadb.url), unique("ranges").replace("-", "_")
    database.run(f"CREATE TABLE {table} (id VARCHAR(10), fraud BOOLEAN, seen TIMESTAMP NULL)")
    database.run(f"INSERT INTO {table} VALUES ('64', TRUE, '2024-01-01 12:00:00')")
    step = lookup(type="sql", database=mariadb.url, table=table, cache=0)
    stream = FileStream(spark, tmp_path, "ip string", [{"ip": "64.1"}], [{"ip": "64.2"}])
    found: list[tuple[object, ...]] = []

    def handle(batch: DataFrame, number: int) -> None:
        looked_up = applied(batch, step)
        if number == 1:
            mariadb.kill()
            thread.start()
        found.extend(values(looked_up))

    thread = threading.Thread(target=mariadb.start)
    start(stream.rows, handle, tmp_path / "checkpoint").awaitTermination()
    thread.join()

    assert [row[:2] for row in found] == [("64.1", True), ("64.2", True)]
    assert str(found[0][2]) == "2024-01-01 12:00:00"


def test_a_streaming_plan_can_ask_as_well(spark: SparkSession, tmp_path: Path) -> None:
    database = SqlDatabase(f"sqlite:///{tmp_path}/d.db")
    database.run("CREATE TABLE ranges (id TEXT, fraud BOOLEAN)")
    database.run("INSERT INTO ranges VALUES ('64', 1)")
    stream = FileStream(spark, tmp_path, "ip string", [{"ip": "64.1"}], [{"ip": "65.1"}])

    looked_up = applied(stream.rows, lookup(type="sql", database=database.url, table="ranges"))

    assert streamed(looked_up, tmp_path / "checkpoint") == [[("64.1", True)], [("65.1", None)]]

"""What pipelines cost: their latency, and their speed beside the same query written by hand. Prints a table and JSON.

    python -m bench.pipelines [--records N] [--rounds N] [--json FILE]

- real-time: topic -> pipeline -> topic, one record at a time at a fixed rate; from just before produce to just after
  consume.
- micro-batch: topic -> pipeline -> SQLite; from just before produce until the row can be read.
- throughput: the same million records, the same work (decode JSON, filter, compute, encode), by a pipeline and by a
  bare Structured Streaming query, in turns; the figure is the ratio of their times, median of the rounds.

Everything runs on this machine, on a log server started for it, and stops by itself.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench import report
from bench.loads import new_topic
from bench.systems import Millstream
from millstream.cluster.connection import Connection
from millstream.pipelines import Pipeline, jars
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.spark.runner import Runner
from millstream.pipelines.spark.session import start_session
from millstream.pipelines.status import Snapshot

SCHEMA = "id bigint, sent double, city string, amount double"
RATE = 200
LATENCY_SECONDS = 75
SETTLE_SECONDS = 10
REAL_TIME_BATCH = "60s"


@contextmanager
def running(pipeline: Pipeline, bootstrap: str, home: Path, spark: SparkSession, **options: Any) -> Iterator[None]:
    """The pipeline in a thread, from when it runs to when it has stopped."""
    started = threading.Event()

    def watch(snapshot: Snapshot) -> None:
        if snapshot and all(status.state != "starting" for status in snapshot):
            started.set()

    runner = Runner([pipeline], Connection(bootstrap), PipelineHome(home), session=spark, **options)
    thread = threading.Thread(target=runner.run, args=(watch,))
    thread.start()
    try:
        started.wait(60)
        yield
    finally:
        runner.stop(now=True)
        thread.join()


def records(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield json.dumps({"id": number, "sent": time.time(), "city": "Ulm", "amount": number % 100 / 4}).encode()


def real_time_latency(bootstrap: str, home: Path, spark: SparkSession) -> list[float]:
    """Seconds of each record, after the first ones."""
    source, target = new_topic(bootstrap, 2), new_topic(bootstrap, 2)
    pipeline = Pipeline.model_validate(
        {
            "pipeline": "bench-real-time",
            "source": {"topic": source, "schema": SCHEMA},
            "steps": [{"filter": "amount >= 0"}, {"sql": "SELECT id, sent, upper(city) AS city FROM stream"}],
            "sinks": [{"topic": target, "key": "id"}],
            "real_time_batch": REAL_TIME_BATCH,
        }
    )
    found: list[tuple[float, float]] = []
    with running(pipeline, bootstrap, home, spark):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 50})
        consumer.assign([TopicPartition(target, partition, 0) for partition in range(2)])
        done = threading.Event()

        def consume() -> None:
            while not done.is_set():
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    now = time.time()
                    found.append((now, now - json.loads(message.value() or b"")["sent"]))

        reader = threading.Thread(target=consume)
        reader.start()
        begin = time.time()
        for number, value in enumerate(records(RATE * LATENCY_SECONDS)):
            producer.produce(source, value)
            producer.poll(0)
            time.sleep(max(0.0, begin + number / RATE - time.time()))
        producer.flush()
        done.wait(1)
        done.set()
        reader.join()
        consumer.close()
    return [seconds for now, seconds in found if now > begin + SETTLE_SECONDS]


def database_latency(bootstrap: str, home: Path, spark: SparkSession, events: int = 20) -> list[float]:
    """Seconds from produce until the row can be selected, for single events."""
    source = new_topic(bootstrap, 2)
    database = home / "bench.db"
    pipeline = Pipeline.model_validate(
        {
            "pipeline": "bench-database",
            "source": {"topic": source, "schema": SCHEMA},
            "sinks": [{"database": f"sqlite:///{database}", "table": "events"}],
        }
    )
    found = []
    with running(pipeline, bootstrap, home, spark):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        for number in range(events):
            sent = time.time()
            producer.produce(source, json.dumps({"id": number, "sent": sent, "city": "Ulm", "amount": 1}))
            producer.flush()
            while not _has(database, number):
                time.sleep(0.005)
            found.append(time.time() - sent)
    return found[events // 4 :]


def _has(database: Path, number: int) -> bool:
    connection = sqlite3.connect(database)
    try:
        return bool(connection.execute("SELECT count(*) FROM events WHERE id = ?", (number,)).fetchone()[0])
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()


def throughput(bootstrap: str, home: Path, spark: SparkSession, count: int, rounds: int) -> list[tuple[float, float]]:
    """Seconds of the pipeline and of the bare query, round after round."""
    source = new_topic(bootstrap, 2)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for value in records(count):
        producer.produce(source, value)
        producer.poll(0)
    producer.flush()
    return [
        (
            _by_pipeline(bootstrap, home, spark, source, new_topic(bootstrap, 2), number),
            _by_hand(bootstrap, home, spark, source, new_topic(bootstrap, 2), number),
        )
        for number in range(rounds + 1)
    ][1:]


def _by_pipeline(bootstrap: str, home: Path, spark: SparkSession, source: str, target: str, number: int) -> float:
    pipeline = Pipeline.model_validate(
        {
            "pipeline": f"bench-throughput-{number}",
            "source": {"topic": source, "schema": SCHEMA},
            "steps": [
                {"filter": "amount > 1"},
                {"sql": "SELECT id, upper(city) AS city, amount * 2 AS twice FROM stream"},
            ],
            "sinks": [{"topic": target, "key": "id"}],
        }
    )
    runner = Runner([pipeline], Connection(bootstrap), PipelineHome(home), session=spark, once=True)
    begin = time.monotonic()
    code = runner.run()
    assert code == 0, runner.snapshot()
    return time.monotonic() - begin


def _by_hand(bootstrap: str, home: Path, spark: SparkSession, source: str, target: str, number: int) -> float:
    begin = time.monotonic()
    raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
    value = F.from_json(F.col("value").cast("string"), SCHEMA)
    rows = raw.option("startingOffsets", "earliest").load().select(value.alias("v")).select("v.*").where("amount > 1")
    rows = rows.selectExpr("id", "upper(city) AS city", "amount * 2 AS twice")
    out = rows.select(F.col("id").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))
    query = (
        out.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(home / f"bare-{number}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.monotonic() - begin


def percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "events": len(ordered),
        "p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 2),
        "max_ms": round(ordered[-1] * 1000, 2),
    }


PAGE = """# What pipelines cost

Written by `python -m bench.pipelines --page docs/pipelines/performance.md` on {date}, commit {commit}. {machine}.

| what | events | p50 | p99 | largest |
|---|---|---|---|---|
| topic to topic, real-time, {rate} a second | {rt[events]} | {rt[p50_ms]} ms | {rt[p99_ms]} ms | {rt[max_ms]} ms |
| topic to SQLite, until the row can be read | {db[events]} | {db[p50_ms]} ms | {db[p99_ms]} ms | {db[max_ms]} ms |

The real-time figures include the moment, every {batch}, when the query writes down its progress and pauses.

| {tp[records]} records: decode JSON, filter, compute, encode, write to a topic | records a second |
|---|---|
| a pipeline | {tp[pipeline_per_second]} |
| the same query written by hand on Structured Streaming | {tp[bare_per_second]} |

Ratio, pipeline to hand-written, median of the rounds: {tp[ratio]} (from {tp[spread][0]} to {tp[spread][1]}). A
pipeline also looks for bad records and commits its offsets to a consumer group; it asks for larger fetches and sends
larger requests than Spark's defaults, which the query written by hand has.
"""


def write_page(page: Path, results: dict[str, Any]) -> None:
    page.write_text(
        PAGE.format(
            date=report.today(),
            commit=report.commit(),
            machine=results["machine"],
            rate=RATE,
            batch=REAL_TIME_BATCH,
            rt=results["real_time"],
            db=results["database"],
            tp=results["throughput"],
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000, help="records of the throughput rounds")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the throughput row")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--page", type=Path, help="write the page of the docs there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder, ExitStack() as stack:
        server = Millstream(Path(folder) / "server")
        stack.callback(server.stop)
        server.start()
        bootstrap = server.bootstrap
        home = Path(folder) / "home"
        spark = start_session([], jars.fetch(), home, real_time_slots=4)
        try:
            results: dict[str, Any] = {
                "machine": report.machine(),
                "real_time": percentiles(real_time_latency(bootstrap, home, spark)),
                "database": percentiles(database_latency(bootstrap, home, spark)),
            }
            times = throughput(bootstrap, home, spark, given.records, given.rounds)
        finally:
            spark.stop()
    ratios = [bare / ours for ours, bare in times]
    results["throughput"] = {
        "records": given.records,
        "pipeline_per_second": round(given.records / statistics.median(ours for ours, _ in times)),
        "bare_per_second": round(given.records / statistics.median(bare for _, bare in times)),
        "ratio": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
    }
    print(json.dumps(results, indent=2))
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    if given.page:
        write_page(given.page, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

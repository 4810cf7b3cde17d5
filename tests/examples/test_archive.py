"""Example archive: the comparison, the lambda query, and all of it over kill -9."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from confluent_kafka import Producer
from rich.console import Console

from archive.check import compare_archive, lambda_answer
from archive.sales import HOURS_A_SECOND, SHOPS, Till
from example_kit import Run, create_topic, options_parser
from example_kit.reading import read_topic, text


def test_the_comparison_finds_what_is_missing_doubled_or_different(log: str, tmp_path: Path) -> None:
    create_topic(log, "sales-test")
    producer = Producer({"bootstrap.servers": log})
    for value in ("a", "b", "c"):
        producer.produce("sales-test", value, key="k")
    producer.flush()
    folder = tmp_path / "topic=sales-test"
    folder.mkdir()
    rows = [(0, "a"), (0, "a"), (1, "other")]
    columns = {
        "partition": [0] * 3,
        "offset": [offset for offset, _ in rows],
        "key": ["k"] * 3,
        "value": [value for _, value in rows],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "part.parquet")
    found = compare_archive(log, ["sales-test"], tmp_path)
    assert {name: found[name] for name in ("records", "archived", "missing", "doubled", "different")} == {
        "records": 3,
        "archived": 3,
        "missing": 1,
        "doubled": 1,
        "different": 1,
    }


def test_the_lambda_query_counts_each_hour_in_one_layer(tmp_path: Path) -> None:
    views = tmp_path / "views.db"
    with closing(sqlite3.connect(views)) as connection, connection:
        for view in ("batch_view", "speed_view"):
            connection.execute(f"CREATE TABLE {view} (shop TEXT, hour TEXT, sales INTEGER, cents INTEGER)")
        connection.execute("INSERT INTO batch_view VALUES ('A', '2026-01-01 10:00', 2, 20)")
        connection.execute(
            "INSERT INTO speed_view VALUES ('A', '2026-01-01 10:00', 2, 20), ('A', '2026-01-01 11:00', 1, 5), "
            "('B', '2026-01-01 12:00', 1, 7)"
        )
    assert lambda_answer(views, "2026-01-01 11:00") == {"A": (3, 25), "B": (1, 7)}


@pytest.mark.parametrize("seconds", ["8", "40", "400"])
def test_the_shops_are_never_ahead_of_the_clock(seconds: str, tmp_path: Path) -> None:
    options = options_parser("archive", None, seconds=8, rate=1).parse_args(["--seconds", seconds])
    options.out = tmp_path
    till = Till(Run(options, "127.0.0.1:1", Console(quiet=True)))
    assert till.now + timedelta(hours=HOURS_A_SECOND * options.seconds) <= datetime.now(UTC)


@pytest.mark.timeout(300)  # starting Spark takes its time
@pytest.mark.usefixtures("spark_jars")
def test_nothing_is_lost_or_doubled_over_kill_9_and_the_lambda_answer_is_right(example: Any, log: str) -> None:
    report = example("archive", "--bootstrap", log, "--seconds", "4", "--rate", "100")
    archive = report["archive"]
    assert archive["records"] == archive["archived"] == report["sales_made"] == 400
    assert (archive["missing"], archive["doubled"], archive["different"]) == (0, 0, 0)
    hours = {file.parent.name for file in (example.out / "archive").rglob("hour=*/*.parquet")}
    assert len(hours) >= 4
    layers = report["lambda"]
    assert layers["shops_wrong"] == 0
    assert layers["sales_from_batch_layer"] > 0
    assert layers["sales_from_speed_layer"] > 0
    assert layers["sales_from_batch_layer"] + layers["sales_from_speed_layer"] == 400
    assert "kill -9" in example.said
    sales = [json.loads(text(record.value())) for topic in SHOPS for record in read_topic(log, topic)]
    counts = Counter(sale["shop"] for sale in sales)
    assert {shop: int(sold.split()[0]) for shop, sold in report["sold"].items()} == counts

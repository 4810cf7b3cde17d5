"""The samples in the pages about sources, tables and values are run, and give what the pages say."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines import read
from millstream.testing import TestServer, running_server
from support.doc_samples import Sample, files_beside, pipeline_samples
from support.running_pipelines import Running, Topics

PAGES = ("sources/topic.md", "sources/database.md", "sources/files.md", "sources/tail.md", "sources/generate.md",
         "tables.md", "values.md")  # fmt: skip
SAMPLES = [sample for sample in pipeline_samples() if str(sample.page).endswith(PAGES)]


@pytest.fixture
def server() -> Iterator[TestServer]:
    """A log of its own: the samples name their topics as they like."""
    with running_server() as server:
        yield server


Topic = dict[str, list[Any]]
ORDERS = [{"id": 1, "customer": "anna", "amount": 12.5}, {"id": 2, "customer": "bert", "amount": 9999}]
TOPICS: dict[str, Topic] = {
    "large-orders": {"orders": ORDERS},
    "january": {"orders": ORDERS},
    "orders-with-names": {"orders": ORDERS, "customers": [{"name": "Bert", "city": "Bonn"}]},
    "clean-orders": {"raw-orders": [{"id": 1, "state": "open", "amount": 2}, {"id": 0, "state": "open"}]},
}
"""Pipeline -> what is in the topics that it reads; the key of a customer is the name in small letters."""


def values(topics: Topics, topic: str) -> list[Any]:
    return [json.loads(record.value() or b"null") for record in topics.all(topic)]


RESULTS: dict[str, Callable[[Topics, Path], object]] = {
    "large-orders": lambda topics, _: [value["id"] for value in values(topics, "large-orders")] == [2],
    "january": lambda _, folder: (folder / "january").is_dir(),
    "new-orders": lambda topics, _: [value["amount"] for value in values(topics, "orders")] == [12.5, 99.0],
    "changed-orders": lambda topics, _: [value["id"] for value in values(topics, "changed-orders")] == [1, 2],
    "import-orders": lambda topics, _: [value["customer"] for value in values(topics, "orders")] == ["anna", "bert"],
    "server-errors": lambda topics, _: [value["status_code"] for value in values(topics, "server-errors")] == [500],
    "made-up-clicks": lambda topics, _: sorted(v["id"] for v in values(topics, "clicks")) == list(range(5000)),
    "orders-with-names": lambda topics, _: (
        [(value["name"], value["amount"]) for value in values(topics, "orders-with-names")] == [("Bert", 14998.5)]
    ),
    "clean-orders": lambda topics, _: (
        [record.value() for record in topics.all("clean-orders")] == [b"1,open,2.0"]
        and len(topics.all("clean-orders-dead-letters")) == 1
    ),
}


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_samples_run(sample: Sample, server: TestServer, spark: SparkSession, tmp_path: Path) -> None:
    for name, text in files_beside(sample.page).items():
        (tmp_path / name).write_text(text)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript((tmp_path / "shop.sql").read_text())
    file = tmp_path / "sample.yaml"
    file.write_text(sample.text)
    (pipeline,) = read(file)
    topics = Topics(server.bootstrap_servers)
    for topic, records in TOPICS.get(pipeline.name, {}).items():
        topics.fill(topic, records, lambda value: value["name"].lower() if "name" in value else None)
    once = pipeline.model_copy(update={"mode": "once"})
    with Running(once, server.bootstrap_servers, spark, tmp_path / "home") as running:
        running.join()
    assert running.code == 0
    assert RESULTS[pipeline.name](topics, tmp_path)

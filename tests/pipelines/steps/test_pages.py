"""The samples in the pages about steps and look-ups are run, and give what the pages say."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from millstream.pipelines import read
from millstream.testing import running_server
from support.doc_samples import Sample, files_beside, pipeline_samples
from support.running_pipelines import Running, Topics

PAGES = ("pipelines/steps.md", "pipelines/lookups.md")
PATIENCE = 240.0
"""All samples run in one session, one after the other."""
pytestmark = pytest.mark.timeout(300)
SAMPLES = [sample for sample in pipeline_samples() if str(sample.page).endswith(PAGES)]
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "customer": "anna", "amount": 12.5},
    {"id": 2, "customer": "bert", "amount": 9999.0},
    {"id": 2, "customer": None, "amount": 9999.0},
]


class Flow(NamedTuple):
    """What is in the topics that a sample reads, and what comes out at the other end."""

    given: dict[str, list[Any]]
    topic: str
    expected: list[Any]
    dead_letters: int = 0


def moment(minute: int, second: int = 0) -> str:
    return f"2024-01-01T00:{minute:02}:{second:02}.000000Z"


VISITORS = {"visitors": [{"ip": "10.0.0.1"}, {"ip": "66.0.0.1"}, {"ip": "99.0.0.1"}]}
FLOWS = {
    "sql-large-orders": Flow(
        {"orders": ORDERS},
        "large-orders",
        [{"id": 2, "name": "BERT", "amount": 9999.0}, {"id": 2, "name": None, "amount": 9999.0}],
    ),
    "parse-slow-requests": Flow(
        {"requests": ["GET /a took 250 ms", "PUT /b took 9 ms", "?"]},
        "slow-requests",
        [{"method": "GET", "url": "/a", "took_ms": 250}],
        dead_letters=1,
    ),
    "cast-amounts": Flow(
        {"raw-orders": [{"id": "1", "amount": "2.5", "day": "2024-01-01"}, {"id": "x", "amount": "1"}]},
        "cast-orders",
        [{"id": 1, "amount": 2.5, "day": "2024-01-01"}],
        dead_letters=1,
    ),
    "filter-orders": Flow({"orders": ORDERS}, "some-orders", ORDERS[:2]),
    "select-columns": Flow(
        {"orders": ORDERS},
        "customers-of-orders",
        [{"id": 1, "customer": "ANNA"}, {"id": 2, "customer": "BERT"}, {"id": 2, "customer": None}],
    ),
    "add-tax": Flow({"orders": ORDERS[:1]}, "taxed-orders", [{**ORDERS[0], "tax": 2.5, "total": 15.0}]),
    "drop-names": Flow({"orders": ORDERS[:1]}, "nameless-orders", [{"id": 1, "amount": 12.5}]),
    "watermark-visits": Flow(
        {"visits": [{"page": "a", "at": moment(0, 10)}, {"page": "b", "at": moment(30)}]},
        "visits-per-minute",
        [{"window_start": moment(0), "window_end": moment(1), "page": "a", "visits": 1}],
    ),
    "deduplicate-orders": Flow({"orders": ORDERS}, "orders-once", ORDERS[:2]),
    "aggregate-sales": Flow(
        {"sales": [{"city": "Ulm", "amount": 1.5, "at": moment(7)}, {"city": "ulm", "amount": 2.5, "at": moment(11)}]},
        "sales-per-city",
        [
            {"window_start": moment(0), "window_end": moment(10), "city": "ULM", "sales": 1, "total": 1.5},
            {"window_start": moment(5), "window_end": moment(15), "city": "ULM", "sales": 2, "total": 4.0},
            {"window_start": moment(10), "window_end": moment(20), "city": "ULM", "sales": 1, "total": 2.5},
        ],
    ),
    "join-clicks": Flow(
        {
            "shown": [{"ad": 1, "page": "a", "shown_at": moment(0)}, {"ad": 2, "page": "b", "shown_at": moment(0)}],
            "ad-clicks": [{"clicked": 1, "clicked_at": moment(5)}],
        },
        "clicked-ads",
        [{"ad": 1, "page": "a", "shown_at": moment(0), "clicked": 1, "clicked_at": moment(5)}],
    ),
    "python-orders": Flow(
        {"orders": ORDERS[:1]}, "orders-with-first-letters", [{**ORDERS[0], "name": "Anna", "letter": "A"}]
    ),
    "map-agents": Flow(
        {"agents": [{"id": 1, "agent": "Lynx/2"}, {"id": 2, "agent": "Lynx"}]},
        "browsers",
        [{"id": 1, "browser": "Lynx", "version": 2}],
        dead_letters=1,
    ),
    "state-streaks": Flow(
        {"games": [{"player": "a", "won": True}, {"player": "a", "won": True}]},
        "streaks",
        [{"player": "a", "streak": 2}],
    ),
    "lookup-in-a-file": Flow(
        VISITORS,
        "visitors-with-networks",
        [
            {"ip": "10.0.0.1", "owner": "ours", "trusted": True},
            {"ip": "66.0.0.1", "owner": "theirs", "trusted": False},
        ],
        dead_letters=1,
    ),
    "lookup-in-memory": Flow(VISITORS, "visitors-in-offices", [{"ip": "10.0.0.1", "city": "Ulm", "floor": 2}]),
    "lookup-in-a-database": Flow(
        {"orders": ORDERS[:2]},
        "orders-with-places",
        [{**ORDERS[0], "place": "shelf 7"}, {**ORDERS[1], "place": "cellar"}],
    ),
}


class Ran(NamedTuple):
    """The samples after they have run, all together, until all that was there was done."""

    running: Running
    topics: Topics


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """A log of its own: the samples name their topics as they like. Those that read one topic get one each."""
    folder = tmp_path_factory.mktemp("samples")
    for page in {sample.page for sample in SAMPLES}:
        for name, text in files_beside(page).items():
            (folder / name).write_text(text)
    with closing(sqlite3.connect(folder / "stock.db")) as connection:
        connection.executescript((folder / "stock.sql").read_text())
    with running_server() as server:
        topics, pipelines = Topics(server.bootstrap_servers), []
        for sample in SAMPLES:
            name, text = name_of(sample), sample.text
            for topic, records in FLOWS[name].given.items():
                text = text.replace(f"topic: {topic},", f"topic: {name}-{topic},")
                topics.fill(f"{name}-{topic}", records)
            (folder / f"{name}.yaml").write_text(text)
            pipelines += read(folder / f"{name}.yaml")
        with Running(pipelines, server.bootstrap_servers, spark, folder / "home", once=True) as running:
            running.join(PATIENCE)
        yield Ran(running, topics)


def name_of(sample: Sample) -> str:
    return next(line.split()[1] for line in sample.text.splitlines() if line.startswith("pipeline:"))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_samples_give_what_they_should(sample: Sample, ran: Ran) -> None:
    name = name_of(sample)
    flow = FLOWS[name]

    found = [json.loads(record.value() or b"null") for record in ran.topics.all(flow.topic)]

    assert sorted(found, key=str) == sorted(flow.expected, key=str)
    status = ran.running.status(name)
    assert status is not None
    assert status.error is None
    if flow.dead_letters:
        assert len(ran.topics.all(f"{name}-dead-letters")) == flow.dead_letters


def test_all_samples_ran_to_their_end(ran: Ran) -> None:
    assert ran.running.code == 0


def test_every_sample_has_results_to_compare_with() -> None:
    assert sorted(map(name_of, SAMPLES)) == sorted(FLOWS)

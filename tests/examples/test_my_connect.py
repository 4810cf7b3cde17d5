"""My Connect: who may message whom, the figures, and the whole of it with a worker killed."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from example_kit import ExampleError, create_topic
from example_kit.background import in_background
from example_kit.exactly_once import ExactlyOnce
from example_kit.reading import header, read_topic, text
from millstream.engines.ports import free_ports
from millstream.testing import TestServer
from my_connect.delivery import Delivery, RefusedError, parsed
from my_connect.diagnostics import inbox, lag_of
from my_connect.example import last_values, line, main, out_of_order, table
from my_connect.topics import (
    CONNECTIONS,
    DEAD_LETTERS,
    DEGREES_SPARK,
    DELIVERY,
    INBOXES,
    MESSAGES,
    PROFILES,
    TOPICS,
    pair,
)
from my_connect.usage import Usage, percentile
from support.cluster import eventually
from support.millstream_server import MillstreamServer


@pytest.fixture
def bootstrap(millstream: TestServer) -> str:
    for name, (partitions, config) in TOPICS.items():
        create_topic(millstream.bootstrap_servers, name, partitions=partitions, config=config)
    return millstream.bootstrap_servers


class World:
    """People, by hand."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def put(self, topic: str, key: str, value: Any) -> None:
        self._producer.produce(topic, key=key, value=value if value is None else json.dumps(value))
        self._producer.flush()

    def join(self, *people: str) -> None:
        for person in people:
            self.put(PROFILES, person, {"name": person})

    def connect(self, one: str, other: str, *, connected: bool = True) -> None:
        self.put(CONNECTIONS, pair(one, other), {"people": [one, other], "connected": connected})

    def message(self, sender: str, receiver: str, name: str) -> None:
        message = {"id": name, "from": sender, "to": receiver, "text": f"text of {name}", "sent_at": 1.0}
        self.put(MESSAGES, receiver, message)


@contextmanager
def delivering(bootstrap: str) -> Iterator[None]:
    worker = ExactlyOnce(bootstrap, name="worker", group=DELIVERY, topics=[MESSAGES], wait=0.05)
    delivery = Delivery(bootstrap)
    with in_background(lambda stop: worker.run(delivery.work, stop)):
        yield


def settle(bootstrap: str) -> None:
    """Until all messages are delivered or refused."""
    assert eventually(lambda: lag_of(bootstrap, DELIVERY, [MESSAGES]) == 0)


def ids(bootstrap: str, person: str) -> list[str]:
    return [message["id"] for message in inbox(bootstrap, person)]


def reasons(bootstrap: str) -> list[str]:
    return [header(record, "error") for record in read_topic(bootstrap, DEAD_LETTERS)]


# --- delivery ---


def test_only_those_who_are_connected_reach_one_another(bootstrap: str) -> None:
    world = World(bootstrap)
    world.join("ada", "bela", "cleo")
    world.connect("bela", "ada")
    with delivering(bootstrap):
        world.message("ada", "bela", "1")
        world.message("bela", "ada", "2")
        world.message("cleo", "ada", "3")
        world.message("ada", "dan", "4")
        settle(bootstrap)
        world.connect("ada", "cleo")  # in mid-run: known before the next message is judged
        world.message("cleo", "ada", "5")
        settle(bootstrap)
        world.connect("ada", "bela", connected=False)
        world.message("bela", "ada", "6")
        settle(bootstrap)
        world.put(PROFILES, "cleo", None)  # left
        world.message("ada", "cleo", "7")
        world.put(MESSAGES, "ada", {"id": "8"})
        settle(bootstrap)
    assert ids(bootstrap, "ada") == ["2", "5"]
    assert ids(bootstrap, "bela") == ["1"]
    expected = Counter({"not connected": 2, "no such person": 2, "malformed": 1})
    assert Counter(reasons(bootstrap)) == expected


def test_a_worker_that_starts_again_delivers_nothing_twice(bootstrap: str) -> None:
    world = World(bootstrap)
    world.join("ada", "bela")
    world.connect("ada", "bela")
    for round_ in range(3):
        with delivering(bootstrap):
            world.message("ada", "bela", str(round_))
            settle(bootstrap)
    assert ids(bootstrap, "bela") == ["0", "1", "2"]


def test_a_server_that_is_killed_and_comes_back_costs_nothing(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with MillstreamServer(folder=tmp_path, port=port) as server:
        bootstrap = server.bootstrap_servers
        for name, (partitions, config) in TOPICS.items():
            create_topic(bootstrap, name, partitions=partitions, config=config)
        world = World(bootstrap)
        world.join("ada", "bela")
        world.connect("ada", "bela")
        with delivering(bootstrap):
            world.message("ada", "bela", "1")
            settle(bootstrap)
            server.restart(kill=True)
            world.message("ada", "bela", "2")
            settle(bootstrap)
        assert ids(bootstrap, "bela") == ["1", "2"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"{",
        b"[]",
        b'{"id": "1"}',
        b'{"id": 1, "from": "a", "to": "b", "text": "", "sent_at": 1}',
        b'{"id": "1", "from": "a", "to": "b", "text": "", "sent_at": "x"}',
    ],
)
def test_what_is_no_message_is_refused(value: bytes | None) -> None:
    with pytest.raises(RefusedError, match="malformed"):
        parsed(value)


# --- figures ---


def test_figures_are_made_of_the_records(bootstrap: str) -> None:
    world = World(bootstrap)
    world.join("ada", "bela", "cleo")
    world.connect("ada", "bela")
    world.connect("ada", "bela")  # twice is once
    world.connect("ada", "cleo")
    world.connect("ada", "cleo", connected=False)
    with delivering(bootstrap):
        world.message("ada", "bela", "1")
        world.message("bela", "ada", "2")
        world.message("bela", "nobody", "3")
        world.put(MESSAGES, "ada", "no message")
        settle(bootstrap)
    usage = Usage()
    for topic in TOPICS:
        for record in read_topic(bootstrap, topic):
            usage.see(record, now=1.5)
    figures = usage.figures(now=2.0)
    assert figures["sent"] == 4
    assert figures["delivered"] == 2
    assert figures["refused"] == {"no such person": 1, "malformed": 1}
    assert figures["active_people"] == 2
    assert figures["connections"] == 1
    assert figures["most_connected"] == {"ada": 1, "bela": 1, "cleo": 0}
    assert figures["latency_ms"] == {"p50": 500.0, "p99": 500.0}
    assert figures["messages_a_minute"] == 180
    assert usage.figures(now=100.0)["active_people"] == 0
    registry = usage.metrics.registry
    assert registry.get_sample_value("my_connect_delivered_total") == 2
    assert registry.get_sample_value("my_connect_refused_total", {"reason": "malformed"}) == 1
    assert registry.get_sample_value("my_connect_delivery_seconds_count") == 2


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0
    assert [percentile(list(range(100)), share) for share in (0.5, 0.99)] == [50, 99]


def test_order_is_judged_for_each_pair() -> None:
    def message(sender: str, at: float) -> dict[str, Any]:
        return {"from": sender, "to": "b", "sent_at": at}

    assert out_of_order([message("a", 1), message("c", 0), message("a", 2)]) == 0
    assert out_of_order([message("a", 2), message("a", 1)]) == 1


# --- all of it ---


def test_my_connect(millstream: TestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap = millstream.bootstrap_servers
    assert main([f"--bootstrap={bootstrap}", "--seconds=4", f"--out={tmp_path}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["lost"] == report["delivered_twice"] == report["out_of_order"] == 0
    assert report["prometheus_agrees"] is True
    assert report["delivered"] > 500
    assert report["messages_sent"] == report["delivered"] + sum(report["refused"].values())

    sent = [json.loads(record.value() or b"") for record in read_topic(bootstrap, MESSAGES) if _is_json(record.value())]
    delivered = Counter(json.loads(record.value() or b"")["id"] for record in read_topic(bootstrap, INBOXES))
    assert max(delivered.values()) == 1
    connected = {
        text(record.key()): json.loads(record.value() or b"")["connected"]
        for record in read_topic(bootstrap, CONNECTIONS)
    }
    for message in sent:
        may = message["to"] != "nobody" and connected[pair(message["from"], message["to"])]
        assert may == (message["id"] in delivered)

    person = sent[0]["to"]
    assert main(["inbox", f"--bootstrap={bootstrap}", f"--person={person}"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ids(bootstrap, person))
    with pytest.raises(ExampleError, match=r"is on .* already"):
        main([f"--bootstrap={bootstrap}", f"--out={tmp_path}"])


@pytest.mark.usefixtures("spark_jars")
def test_spark_counts_the_same(example: Any, log: str) -> None:
    report = example("my-connect", "--bootstrap", log, "--spark", "--seconds", "3")
    malformed = report["refused"].get("malformed", 0)
    assert report["messages_counted_by_spark"] == report["messages_sent"] - malformed > 300
    assert report["connections_counted_by_spark"] == report["connections"]
    most = sorted(report["most_connected"].values())
    assert sorted(report["most_connected_by_spark"].values()) == most
    assert Counter(degrees(log)) == Counter(
        {name: row["connections"] for name, row in last_values(log, DEGREES_SPARK).items()}
    )


def degrees(bootstrap: str) -> Counter[str]:
    """How many connections each person has, counted here."""
    connections = {record.key(): json.loads(record.value() or b"") for record in read_topic(bootstrap, CONNECTIONS)}
    return Counter(person for found in connections.values() for person in found["people"] if found["connected"])


def test_the_table_and_the_line() -> None:
    figures = {
        "sent": 1234,
        "delivered": 1000,
        "refused": {"malformed": 2},
        "active_people": 7,
        "latency_ms": {"p50": 1.5, "p99": 20.0},
        "lag": {DELIVERY: 5},
    }
    assert line(figures) == (
        "1,234 sent, 1,000 delivered, 2 refused, 7 people active, p99 20 ms, lag of the delivery 5"
    )
    assert table(figures).row_count == 6


def test_an_inbox_needs_a_person() -> None:
    with pytest.raises(ExampleError, match="whose inbox"):
        main(["inbox"])


def _is_json(value: str | bytes | None) -> bool:
    try:
        json.loads(value or b"")
    except ValueError:
        return False
    return True

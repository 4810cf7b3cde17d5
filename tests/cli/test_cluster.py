"""`millstream cluster` on three brokers of Apache Kafka: partitions moved, spread, led and taken off a broker.

The tests share one cluster; each makes topics of its own and leaves all brokers running.
"""

import gc
import json as json_
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from millstream.cluster.connection import Connection
from millstream.cluster.layout import Layout, patiently, read_layout
from millstream.cluster.plans import to_json
from millstream.engines.kafka import KafkaEngine
from support.cli import refused, run, succeed
from support.cluster import eventually, unique
from support.three_brokers import three_brokers

# kafka-python leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "auto.leader.rebalance.enable": "false",
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaEngine]:
    with three_brokers(SETTINGS) as engine:
        yield engine
    gc.collect()  # here, where the warning is known, and not in somebody else's test


@pytest.fixture
def where(kafka: KafkaEngine) -> tuple[str, str]:
    return ("--bootstrap", kafka.bootstrap)


def layout(kafka: KafkaEngine) -> Layout:
    return patiently(Connection(kafka.bootstrap), read_layout)


def replicas(kafka: KafkaEngine, topic: str) -> list[list[int]]:
    return [list(held) for _, held in sorted(layout(kafka).placement([topic]).items())]


def create(kafka: KafkaEngine, assignment: list[list[int]]) -> str:
    """A topic whose partitions have these replicas, with some records."""
    name = unique("topic")
    connection = Connection(kafka.bootstrap)
    with connection.admin() as admin:
        admin.create_topics({name: {"assignments": dict(enumerate(assignment))}})
        admin.wait_for_topics([name])
    producer = connection.producer()
    for number in range(100):
        producer.produce(name, b"x" * 1000, partition=number % len(assignment))
    assert producer.flush(30) == 0
    eventually(lambda: not any(p.under_replicated for p in layout(kafka).partitions if p.topic == name))
    return name


@pytest.fixture
def topic(kafka: KafkaEngine) -> Iterator[str]:
    name = create(kafka, [[1, 2], [1, 2], [2, 1], [2, 1]])
    yield name
    delete(kafka, name)


def delete(kafka: KafkaEngine, name: str) -> None:
    with Connection(kafka.bootstrap).admin() as admin:
        admin.delete_topics([name])
    eventually(lambda: name not in layout(kafka).topics)


@contextmanager
def without(kafka: KafkaEngine, broker: int) -> Iterator[None]:
    """The broker is killed and is there again afterwards, with everything in sync."""
    kafka.kill_broker(broker)
    try:
        eventually(lambda: broker not in layout(kafka).alive, timeout=60)
        yield
    finally:
        kafka.start_broker(broker)
        eventually(lambda: broker in layout(kafka).alive, timeout=60)
    eventually(lambda: not any(part.under_replicated for part in layout(kafka).partitions), timeout=60)


def test_info_and_brokers(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    found = succeed("cluster", "info", "--json", *where).json
    assert (found["brokers"], found["voters"], found["controller"]) == ([1, 2, 3], [100], 100)
    assert (found["under_replicated"], found["offline"]) == ([], [])
    rows = succeed("cluster", "brokers", "--json", *where).json
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert sum(row["replicas"] for row in rows) == found["replicas"]
    assert sum(row["leaders"] for row in rows) == found["partitions"]
    assert rows[0]["size_bytes"] > 50_000
    apis = {row["name"]: row for row in succeed("cluster", "apis", "--json", *where).json}
    assert set(apis["Produce"]["by_broker"]) == {"1", "2", "3"}
    assert topic in succeed("cluster", "metrics", "--interval", "0.1", *where).stdout


def test_reassign_shows_a_plan_first(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    before = replicas(kafka, topic)
    text = succeed("cluster", "reassign", "--topic", topic, "--brokers", "2,3", *where, columns=80).stdout
    assert "This is the plan. Nothing was changed; --execute does it." in text
    assert "4 partitions to change, 4 replicas to copy (" in text
    assert "REPLICAS NOW" in text
    assert max(map(len, text.splitlines())) <= 80
    assert replicas(kafka, topic) == before


def test_reassign_to_brokers(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    text = succeed("cluster", "reassign", "--topic", topic, "--brokers", "2,3", "--execute", *where).stdout
    assert text.endswith("4 of 4 partitions moved\n4 partitions moved\n")
    after = replicas(kafka, topic)
    assert all(sorted(held) == [2, 3] for held in after)
    assert sorted(held[0] for held in after) == [2, 2, 3, 3], "the leaders are spread"
    parts = [part for part in layout(kafka).partitions if part.topic == topic]
    assert all(part.has_preferred_leader for part in parts)
    again = succeed("cluster", "reassign", "--topic", topic, "--brokers", "2,3", "--execute", *where).stdout
    assert again == "nothing to do: the partitions are there already\n"
    consumer = Connection(kafka.bootstrap).consumer({"group.id": unique("g"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert len(consumer.consume(100, 30)) == 100, "the records came along"
    consumer.close()


def test_reassign_to_another_replication_factor(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    before = replicas(kafka, topic)
    found = succeed(
        "cluster", "reassign", "--topic", topic, "--replication-factor", "3", "--execute", "--json", *where
    ).json
    assert (found["executed"], found["done"], found["copies"]) == (True, True, 4)
    assert all(sorted(held) == [1, 2, 3] for held in replicas(kafka, topic))
    succeed("cluster", "reassign", "--topic", topic, "--replication-factor", "1", "--execute", *where)
    after = replicas(kafka, topic)
    assert [len(held) for held in after] == [1, 1, 1, 1]
    assert len({held[0] for held in after}) == 3
    assert before != after


def test_plans_in_kafkas_format(kafka: KafkaEngine, where: tuple[str, str], topic: str, tmp_path: Path) -> None:
    before = replicas(kafka, topic)
    save, undo = tmp_path / "plan.json", tmp_path / "undo.json"
    files = ("--save", str(save), "--undo", str(undo))
    wish = ("--topic", topic, "--brokers", "3", "--replication-factor", "1")
    printed = succeed("cluster", "reassign", *wish, *files, "--json", *where)
    written = json_.loads(save.read_text())
    assert written == {name: printed.json[name] for name in ("version", "partitions")}
    assert written["partitions"][0] == {"topic": topic, "partition": 0, "replicas": [3], "log_dirs": ["any"]}
    succeed("cluster", "reassign", "--plan", str(save), "--execute", *where)
    assert replicas(kafka, topic) == [[3], [3], [3], [3]]
    succeed("cluster", "reassign", "--plan", str(undo), "--execute", *where)
    assert replicas(kafka, topic) == before
    (tmp_path / "printed.json").write_text(printed.stdout)
    succeed("cluster", "reassign", "--plan", str(tmp_path / "printed.json"), *where)


def test_balance_evens_out(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    crowded = create(kafka, [[1, 2]] * 6)
    plan = succeed("cluster", "balance", *where, columns=80).stdout
    assert "PREFERRED LEADER OF" in plan
    assert " -> " in plan
    found = succeed("cluster", "balance", "--execute", "--json", *where).json
    counts = [load["replicas"] for load in found["after"]]
    assert max(counts) - min(counts) <= 1
    leaders = [load["leaders"] for load in found["after"]]
    assert max(leaders) - min(leaders) <= 1
    now = layout(kafka)
    held = [broker for part in now.partitions for broker in part.replicas]
    assert [held.count(broker) for broker in (1, 2, 3)] == counts
    assert [sum(part.leader == broker for part in now.partitions) for broker in (1, 2, 3)] == leaders
    assert {topic, crowded} <= {move["topic"] for move in found["partitions"]}
    assert succeed("cluster", "balance", *where).stdout == "nothing to do: the cluster is balanced\n"
    delete(kafka, crowded)


def test_decommission(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    succeed("cluster", "balance", "--execute", *where)
    others = {key: held for key, held in layout(kafka).placement().items() if 3 not in held}
    plan = succeed("cluster", "decommission", "3", *where, columns=80).stdout
    assert "This is the plan" in plan
    text = succeed("cluster", "decommission", "3", "--execute", *where).stdout
    assert "broker 3 holds nothing and leads nothing now" in text
    after = layout(kafka).placement()
    assert all(3 not in held for held in after.values())
    assert others.items() <= after.items(), "only what the broker had was moved"
    row = succeed("cluster", "brokers", "--json", *where).json[2]
    assert (row["leaders"], row["replicas"], row["size_bytes"]) == (0, 0, 0)
    again = succeed("cluster", "decommission", "3", "--execute", *where).stdout
    assert again == "nothing to do: broker 3 holds nothing\n"
    succeed("cluster", "balance", "--execute", *where)


def test_decommission_refuses_when_too_few_brokers_would_remain(kafka: KafkaEngine, where: tuple[str, str]) -> None:
    tall = create(kafka, [[1, 2, 3]])
    before = layout(kafka).placement()
    said = refused(1, "cluster", "decommission", "2", "--execute", *where)
    assert f"broker 2 cannot be decommissioned: the 2 that would remain are too few for {tall} (3 replicas)" in said
    assert "--replication-factor 2" in said
    assert layout(kafka).placement() == before
    delete(kafka, tall)


def test_a_broker_that_is_down(kafka: KafkaEngine, where: tuple[str, str], topic: str, tmp_path: Path) -> None:
    """What is shown, what is refused, elections, a move that waits and is cancelled, and a dead broker taken out."""
    succeed("cluster", "reassign", "--topic", topic, "--brokers", "1,2", "--execute", *where)
    lonely = create(kafka, [[3]])
    with without(kafka, 3):
        info = succeed("cluster", "info", "--json", *where).json
        assert info["fenced_brokers"] == [3]
        assert f"{lonely}-0" in info["offline"]
        assert info["under_replicated"]
        assert "offline               1: " in succeed("cluster", "info", *where).stdout
        assert succeed("cluster", "brokers", "--json", *where).json[2]["state"] == "fenced"

        assert "broker 3 should hold replicas and is not up" in refused(1, "cluster", "balance", *where)
        assert "broker 3 is not up" in refused(2, "cluster", "reassign", "--topic", topic, "--brokers", "1,3", *where)
        election = run("cluster", "elect", "--topic", lonely, "--unclean", "--execute", "--json", *where)
        assert election.exit_code == 1
        assert election.json[0]["result"] not in ("elected", "not needed")
        assert "Whatever the new leader lacks is lost." in succeed("cluster", "elect", "--unclean", *where).stdout

        waiting = tmp_path / "waiting.json"
        waiting.write_text(json_.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 3]}]}))
        started = run("cluster", "reassign", "--plan", str(waiting), "--execute", "--no-wait", *where)
        assert started.exit_code == 0
        assert started.stderr == "millstream: broker 3 is not up: what moves there waits for it\n"
        assert "1 partition on the way" in started.stdout
        (moving,) = succeed("cluster", "reassignments", "--json", *where).json
        assert (moving["topic"], moving["partition"], moving["adding"]) == (topic, 0, [3])
        assert "This is the plan" in succeed("cluster", "reassignments", "--cancel", *where).stdout
        assert "1 reassignment cancelled" in succeed("cluster", "reassignments", "--cancel", "--execute", *where).stdout
        assert eventually(lambda: succeed("cluster", "reassignments", "--json", *where).json == [])
        assert sorted(replicas(kafka, topic)[0]) == [1, 2]

        delete(kafka, lonely)
        text = succeed("cluster", "decommission", "3", "--execute", *where).stdout
        assert "broker 3 holds nothing and leads nothing now" in text


def test_elect_gives_partitions_back(kafka: KafkaEngine, where: tuple[str, str], topic: str) -> None:
    succeed("cluster", "reassign", "--topic", topic, "--brokers", "1,2", "--execute", *where)
    with without(kafka, 2):
        in_vain = run("cluster", "elect", "--topic", topic, "--execute", *where)
        assert in_vain.exit_code == 1
        assert "elected" not in in_vain.stdout
    plan = succeed("cluster", "elect", "--topic", topic, *where).stdout
    assert [line.split()[2:] for line in plan.splitlines()[1:3]] == [["1", "2"], ["1", "2"]]
    rows = succeed("cluster", "elect", "--execute", "--json", *where).json
    assert {row["result"] for row in rows} == {"elected"}
    assert succeed("cluster", "elect", *where).stdout.startswith("nothing to do")
    assert all(part.has_preferred_leader for part in layout(kafka).partitions)


@pytest.mark.parametrize(("terminal", "brokers"), [(False, [1, 3]), (True, [2, 3])])
def test_ctrl_c_leaves_the_cluster_to_go_on(
    kafka: KafkaEngine, where: tuple[str, str], topic: str, terminal: bool, brokers: list[int]
) -> None:
    ids = ",".join(map(str, brokers))
    with mock.patch("millstream.cluster.reassignment._wait", side_effect=KeyboardInterrupt):
        result = run("cluster", "reassign", "--topic", topic, "--brokers", ids, "--execute", *where, terminal=terminal)
    assert result.exit_code == 130
    assert "interrupted; the cluster goes on moving" in result.stderr
    eventually(lambda: all(sorted(held) == brokers for held in replicas(kafka, topic)))


def test_progress_on_a_terminal(where: tuple[str, str], topic: str) -> None:
    shown = succeed("cluster", "reassign", "--topic", topic, "--brokers", "2,3", "--execute", *where, terminal=True)
    assert "moving" in shown.stdout
    assert "4/4" in shown.stdout


def test_what_does_not_fit_the_cluster(where: tuple[str, str], topic: str, tmp_path: Path) -> None:
    def said(code: int, *arguments: str) -> str:
        return refused(code, "cluster", *arguments, *where)

    assert f"did you mean {topic}?" in said(4, "reassign", "--topic", topic[:-1], "--brokers", "1")
    assert "--brokers: there is no broker 9; there are: 1, 2, 3" in said(
        4, "reassign", "--topic", topic, "--brokers", "9"
    )
    assert "4 replicas need 4 brokers, and there are 3" in said(
        2, "reassign", "--topic", topic, "--replication-factor", "4"
    )
    assert "2 replicas need 2 brokers, and there are 1" in said(2, "reassign", "--topic", topic, "--brokers", "1")
    assert "there is no broker 7; there are: 1, 2, 3" in said(4, "decommission", "7")
    plan = tmp_path / "plan.json"
    for entry, code, words in (
        ({"topic": "nothing", "partition": 0, "replicas": [1]}, 4, "there is no topic 'nothing'"),
        ({"topic": topic, "partition": 99, "replicas": [1]}, 2, f"{topic} has no partition 99"),
        ({"topic": topic, "partition": 0, "replicas": [8]}, 4, "there is no broker 8"),
    ):
        plan.write_text(json_.dumps({"version": 1, "partitions": [entry]}))
        assert words in said(code, "reassign", "--plan", str(plan))
    unwritable = str(tmp_path / "no-such-folder" / "plan.json")
    assert "cannot be written" in said(2, "reassign", "--topic", topic, "--brokers", "2,3", "--save", unwritable)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reassign",), "give either --topic"),
        (("reassign", "--topic", "t"), "say where to with --brokers 1,2,3, or how many replicas"),
        (("reassign", "--topic", "t", "--plan", "p.json"), "give either --topic"),
        (("reassign", "--plan", "p.json", "--brokers", "1"), "--plan says all"),
        (
            ("reassign", "--topic", "t", "--brokers", "1;2"),
            "--brokers: '1;2' is not a list of broker ids, for example 1,2,3",
        ),
        (("reassign", "--topic", "t", "--brokers", "1,1"), "--brokers: '1,1' names a broker twice"),
        (("reassign", "--topic", "t", "--replication-factor", "0"), "--replication-factor"),
        (("reassign", "--plan", "no-such-file.json"), "--plan: no-such-file.json cannot be read: No such file"),
        (("decommission",), "Missing argument"),
        (("decommission", "one"), "BROKER"),
        (("decommission", "-1"), "No such option"),
        (("metrics", "--interval", "0"), "--interval"),
        (("reassignments", "--execute"), "--execute goes with --cancel"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(2, "cluster", *arguments, "--bootstrap", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("not json", "is not JSON"),
        ("[]", 'must be an object with "partitions"'),
        ('{"version": 2, "partitions": []}', "has version 2; 1 is the only one there is"),
        ('{"partitions": [{"partition": 0}]}', 'partitions[0] needs a "topic"'),
        ('{"partitions": [{"topic": "t", "partition": "0"}]}', 'partitions[0] needs a "partition", a number'),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', 'needs "replicas", a list of broker ids'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', 'needs "replicas"'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "names a broker twice: [1, 1]"),
        (
            json_.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}] * 2}),
            "partitions[1]: t-0 is there twice",
        ),
    ],
)
def test_plans_that_cannot_be_read(tmp_path: Path, content: str, words: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(content)
    assert words in refused(2, "cluster", "reassign", "--plan", str(plan), "--bootstrap", "127.0.0.1:1")


def test_an_empty_plan_in_json() -> None:
    empty: dict[str, Any] = to_json([])
    assert empty == {"version": 1, "partitions": []}

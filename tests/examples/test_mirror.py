"""The mirror: what it promises, each promise on real servers; and the whole demo with three of them."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from example_kit import ExampleError, create_topic
from example_kit.reading import header, read_topic, text
from millstream.testing import running_server
from mirror.checks import Record, content, differences
from mirror.copier import PATH_HEADER, Cluster, Mirror, Plan
from mirror.example import main
from mirror.lag import lags, offset_table
from mirror.offsets import OffsetTable, runs_of
from mirror.topics import own_configs
from support.cluster import eventually

ORDERS = re.compile("orders.*")


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    with ExitStack() as stack:
        east, west = (
            Cluster(name, stack.enter_context(running_server()).bootstrap_servers) for name in ("east", "west")
        )
        yield east, west


class Running:
    """A mirror on a thread, and what it said."""

    def __init__(self, plan: Plan) -> None:
        self.said: list[dict[str, Any]] = []
        self.failure = ""
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(plan,))
        self.thread.start()

    def _run(self, plan: Plan) -> None:
        try:
            Mirror(plan, lambda **event: self.said.append(event)).run(self._stop)
        except ExampleError as failure:
            self.failure = str(failure)

    def stop(self) -> None:
        self._stop.set()
        self.thread.join()


@contextmanager
def mirroring(source: Cluster, target: Cluster, topics: str = "orders", **options: Any) -> Iterator[Running]:
    running = Running(Plan(source, target, re.compile(topics), refresh=0.1, **options))
    try:
        yield running
    finally:
        running.stop()


def write(cluster: Cluster, *values: str, topic: str = "orders") -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for value in values:
        producer.produce(topic, value, key=value, partition=0)
    assert producer.flush(20) == 0


def values(cluster: Cluster, topic: str) -> list[str]:
    if topic not in AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=20).topics:
        return []
    return [(record.value() or b"").decode() for record in read_topic(cluster.bootstrap, topic)]


def commit(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(cluster: Cluster, group: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    (answer,) = admin.list_consumer_group_offsets([request]).values()
    offset: int = answer.result().topic_partitions[0].offset
    return offset


# --- offsets ---


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=30), st.integers(0, 130))
def test_a_translated_position_has_the_same_records_before_and_after_it(steps: list[tuple[int, int]], at: int) -> None:
    source = target = -1
    pairs = []
    for here, there in steps:
        source, target = source + here, target + there
        pairs.append((source, target))
    table = OffsetTable("east")
    for run in runs_of("east.orders", pairs):
        table.apply(*table.run_entry(("orders", 0), run))
    position = table.translate(("orders", 0), at)
    assert position is not None
    assert [target >= position for _, target in pairs] == [source >= at for source, _ in pairs]


def test_nothing_copied_is_no_position() -> None:
    assert OffsetTable("east").translate(("orders", 0), 5) is None


def test_the_table_keeps_sources_apart_and_forgets_what_the_target_deleted() -> None:
    table, other = OffsetTable("east"), OffsetTable("west")
    for run in runs_of("east.orders", [(0, 0), (1, 1), (2, 3)]):
        table.apply(*table.run_entry(("orders", 0), run))
        other.apply(*table.run_entry(("orders", 0), run))
    assert other.runs == {}
    gone = list(table.forgotten(("orders", 0), 2))
    assert len(gone) == 1
    for key, value in gone:
        table.apply(key, value)
    assert [run.source_first for run in table.runs["orders", 0]] == [2]


# --- one mirror ---


def test_new_topics_and_partitions_are_picked_up_with_their_configs(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    with mirroring(east, west, "orders.*"):
        create_topic(east.bootstrap, "orders-late", partitions=2, config={"retention.ms": "1234567"})
        create_topic(east.bootstrap, "others")
        write(east, "a", "b", topic="orders-late")
        assert eventually(lambda: values(west, "east.orders-late") == ["a", "b"])
    admin = AdminClient({"bootstrap.servers": west.bootstrap})
    topics = admin.list_topics(timeout=20).topics
    assert len(topics["east.orders-late"].partitions) == 2
    assert "east.others" not in topics
    assert own_configs(admin, "east.orders-late") == {"retention.ms": "1234567"}


def test_records_that_came_by_a_mirror_are_not_sent_back(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    for cluster in clusters:
        create_topic(cluster.bootstrap, "orders")
    with mirroring(east, west, rename="{topic}"), mirroring(west, east, rename="{topic}"):
        write(east, "of east")
        write(west, "of west")
        assert eventually(lambda: len(values(east, "orders")) == len(values(west, "orders")) == 2)
        write(east, "last of east")
        assert eventually(lambda: values(west, "orders")[-1] == "last of east")
        assert eventually(lambda: not any(row.behind for row in [*lags(east, west, ORDERS), *lags(west, east, ORDERS)]))
    assert sorted(values(east, "orders")) == sorted(values(west, "orders")) == ["last of east", "of east", "of west"]


def test_a_chain_forwards_but_never_to_where_a_record_has_been(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    create_topic(east.bootstrap, "orders")
    with mirroring(east, west), mirroring(west, east, r"east\.orders|orders", forward=True, rename="back.{topic}"):
        write(east, "one")
        assert eventually(lambda: values(west, "east.orders") == ["one"])
        create_topic(west.bootstrap, "orders")
        write(west, "two")
        assert eventually(lambda: values(east, "back.orders") == ["two"])
    assert values(east, "back.east.orders") == []
    (copy,) = read_topic(west.bootstrap, "east.orders")
    assert copy.headers() == [(PATH_HEADER, b"east")]


def test_several_clusters_into_one_topic(clusters: tuple[Cluster, Cluster]) -> None:
    with running_server() as server:
        central = Cluster("central", server.bootstrap_servers)
        for cluster in clusters:
            create_topic(cluster.bootstrap, "orders")
            write(cluster, f"{cluster.name}-1", f"{cluster.name}-2")
        east, west = clusters
        with mirroring(east, central, rename="all-orders"), mirroring(west, central, rename="all-orders"):
            assert eventually(lambda: len(values(central, "all-orders")) == 4)
        came = [
            (header(record, PATH_HEADER), text(record.value()))
            for record in read_topic(central.bootstrap, "all-orders")
        ]
        assert sorted(came) == [("east", "east-1"), ("east", "east-2"), ("west", "west-1"), ("west", "west-2")]
        for source in clusters:  # each source has a table of its own, also where their records are mixed
            table = offset_table(source, central)
            there = [table.translate(("orders", 0), offset) for offset in (0, 1)]
            found = {record.offset(): text(record.value()) for record in read_topic(central.bootstrap, "all-orders")}
            assert [found[offset] for offset in there] == [f"{source.name}-1", f"{source.name}-2"]


def test_a_group_goes_on_where_it_was_and_then_is_its_own(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    create_topic(east.bootstrap, "orders")
    write(east, *"abcde")
    commit(east, "billing", "orders", 3)
    with mirroring(east, west, groups=re.compile("bill.*")):
        assert eventually(lambda: committed(west, "billing", "east.orders") == 3)
        commit(east, "billing", "orders", 1)  # somebody rewinds
        assert eventually(lambda: committed(west, "billing", "east.orders") == 1)
        commit(west, "billing", "east.orders", 4)  # somebody works on the target
        commit(east, "billing", "orders", 2)
        commit(east, "bill-too", "orders", 2)
        assert eventually(lambda: committed(west, "bill-too", "east.orders") == 2)
        assert committed(west, "billing", "east.orders") == 4


def test_records_deleted_before_they_were_copied_stop_the_mirror_unless_told(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    create_topic(east.bootstrap, "orders")
    write(east, "a")
    with mirroring(east, west):
        assert eventually(lambda: values(west, "east.orders") == ["a"])
    write(east, "b", "c", "d")
    admin = AdminClient({"bootstrap.servers": east.bootstrap})
    (answer,) = admin.delete_records([TopicPartition("orders", 0, 3)]).values()
    answer.result()
    with mirroring(east, west) as stopped:
        assert eventually(lambda: not stopped.thread.is_alive())
    assert "copied up to 1, but east now has 3 to 4; --skip-gaps" in stopped.failure
    with mirroring(east, west, skip_gaps=True) as going_on:
        assert eventually(lambda: values(west, "east.orders") == ["a", "d"])
    assert any("now has 3 to 4" in event.get("trouble", "") for event in going_on.said)


def test_a_second_mirror_of_the_same_name_takes_over(clusters: tuple[Cluster, Cluster]) -> None:
    east, west = clusters
    create_topic(east.bootstrap, "orders")
    with mirroring(east, west) as first:
        write(east, "a")
        assert eventually(lambda: values(west, "east.orders") == ["a"])
        with mirroring(east, west) as second:
            assert eventually(lambda: any("started" in event for event in second.said))
            write(east, "b")
            assert eventually(lambda: values(west, "east.orders") == ["a", "b"])
            assert eventually(lambda: not first.thread.is_alive())
    assert "taken over" in first.failure
    assert values(west, "east.orders") == ["a", "b"]


# --- the demo ---


def test_the_demo_with_three_clusters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_server() as east, running_server() as west, running_server() as central:
        at = {"east": east.bootstrap_servers, "west": west.bootstrap_servers}
        addresses = [f"--{name}={address}" for name, address in at.items()]
        arguments = [
            f"--bootstrap={central.bootstrap_servers}",
            *addresses,
            "--seconds=4",
            f"--out={tmp_path}",
            "--json",
        ]
        assert main(arguments) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["mirror_killed"] == 3
        assert report["records_that_differ"] == 0
        assert report["profiles_on_each_side"] == [400, 400]
        assert report["orders_billed"]["on_east"] > 0
        assert report["orders_billed"]["then_on_central"] > 0
        assert report["orders_skipped_by_the_move"] == report["orders_billed_twice"] == 0
        for name, address in at.items():
            source = content(address, "orders")
            assert sum(map(len, source.values())) == report["orders_written"][name]
            assert differences(source, content(central.bootstrap_servers, f"{name}.orders")) == 0
            assert offset_table(Cluster(name, address), Cluster("central", central.bootstrap_servers)).positions
        ids = [
            json.loads(record.value() or b"")["id"] for record in read_topic(central.bootstrap_servers, "west.orders")
        ]
        assert len(ids) == len(set(ids)) == report["orders_written"]["west"]


def test_differences_are_found() -> None:
    one: dict[int, list[Record]] = {0: [(b"k", b"v")], 1: [(b"a",)]}
    other: dict[int, list[Record]] = {0: [(b"k", b"w"), (b"x",)]}
    assert differences(one, one) == 0
    assert differences(one, other) == 3


def test_lag_is_shown(clusters: tuple[Cluster, Cluster], capsys: pytest.CaptureFixture[str]) -> None:
    east, west = clusters
    create_topic(east.bootstrap, "orders")
    write(east, "a", "b")
    ends = [f"--source=east={east.bootstrap}", f"--target=west={west.bootstrap}", "--topics=orders"]
    assert main(["lag", *ends]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["orders", "0", "2", "0", "2"]
    with mirroring(east, west):
        assert eventually(lambda: values(west, "east.orders") == ["a", "b"])
    assert main(["lag", *ends]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["orders", "0", "2", "2", "0"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["copy"], "say from where to where"),
        (["copy", "--source=a=h:1", "--target=b=h:2", "--groups=.*", "--rename={topic}"], "needs {source} in --rename"),
    ],
)
def test_mistakes_are_said(arguments: list[str], said: str) -> None:
    with pytest.raises(ExampleError, match=re.escape(said)):
        main(arguments)

"""The status of a cluster: counts, groups with their lag, rates between two looks."""

import gc
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.cluster import status
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError, Unreachable
from millstream.cluster.status import Watch
from millstream.testing import TestServer, running_server


@pytest.fixture
def server() -> Iterator[TestServer]:
    with running_server() as running:
        yield running


def produce(server: TestServer, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(10) == 0


def commit(server: TestServer, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_an_empty_cluster(server: TestServer) -> None:
    found = status.read(Connection(server.bootstrap_servers))
    assert found.controller == 1
    (broker,) = found.brokers
    assert broker == (1, server.bootstrap_servers, True, True, 0, 0)
    assert (found.topics, found.internal_topics, found.partitions) == (0, 0, 0)
    assert found.under_replicated == found.offline == []
    assert found.groups == []
    assert found.notes == []
    assert found.records_in is None


def test_topics_groups_and_rates(server: TestServer) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic("orders", 3, 1)]).values():
        future.result(10)
    produce(server, "orders", 100)
    commit(server, "readers", "orders", 40)
    with Watch(Connection(server.bootstrap_servers)) as watch:
        first = watch.look()
        assert (first.topics, first.internal_topics, first.partitions) == (1, 1, 3)
        assert first.groups == [("readers", "Empty", 60)]
        assert first.brokers[0].leaders == first.brokers[0].replicas == 3 + 4
        assert first.records_in is None
        produce(server, "orders", 50)
        commit(server, "readers", "orders", 140)
        second = watch.look()
    assert second.groups == [("readers", "Empty", 10)]
    assert second.records_in is not None
    assert second.records_out is not None
    assert second.records_out == pytest.approx(2 * second.records_in)
    values = second.as_dict()
    assert values["groups"] == [{"group": "readers", "state": "Empty", "lag": 10}]
    assert values["brokers"][0]["up"] is True


# kafka-python leaves the socket of a connection that was refused to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_goes_away_and_comes_back_is_watched_on() -> None:
    with running_server() as server:
        watch = Watch(Connection(server.bootstrap_servers))
        assert watch.look().controller == 1
        port = server.port
    with pytest.raises(ClusterError, match="the cluster does not answer"):
        watch.look()
    with watch, running_server({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
        assert watch.look().controller == 1
    gc.collect()


def test_nobody_there() -> None:
    with pytest.raises(Unreachable):
        status.read(Connection("127.0.0.1:1"))

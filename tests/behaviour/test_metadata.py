"""Metadata, DescribeTopicPartitions and DescribeCluster."""

from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, create_topic, eventually, topic_is_ready, unique
from support.raw import RawClient

NOT_ASKED = -2147483648


def port(cluster: Cluster) -> int:
    return int(cluster.bootstrap_servers.rsplit(":", 1)[1])


@pytest.mark.parametrize("version", range(14))
def test_metadata_by_name_in_every_version(cluster: Cluster, raw: RawClient, version: int) -> None:
    topic = create_topic(raw, partitions=2)
    response = raw.call("metadata", version, topics=[{"name": topic.name}])
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", port(cluster))
    (found,) = response.topics
    assert (found.error_code, found.name) == (E.none, topic.name)
    assert [(p.error_code, p.partition_index, p.leader_id) for p in found.partitions] == [
        (E.none, 0, 1),
        (E.none, 1, 1),
    ]
    assert all(p.replica_nodes == [1] and p.isr_nodes == [1] for p in found.partitions)
    if version >= 1:
        assert response.controller_id == 1
        assert found.is_internal is False
    if version >= 2:
        assert len(response.cluster_id) == 22
    if version >= 7:
        assert all(p.leader_epoch == 0 and p.offline_replicas == [] for p in found.partitions)
    if version >= 8:
        assert found.topic_authorized_operations == NOT_ASKED
    if version >= 10:
        assert found.topic_id == topic.id
    if version >= 13:
        assert response.error_code == E.none


def test_metadata_by_topic_id(raw: RawClient) -> None:
    topic = create_topic(raw)
    (found,) = raw.call("metadata", 12, topics=[{"topic_id": topic.id, "name": None}]).topics
    assert (found.error_code, found.name, found.topic_id) == (E.none, topic.name, topic.id)
    unknown = uuid4()
    (missing,) = raw.call("metadata", 12, topics=[{"topic_id": unknown, "name": None}]).topics
    assert (missing.error_code, missing.name, missing.topic_id) == (E.unknown_topic_id, None, unknown)
    assert missing.partitions == []


@pytest.mark.parametrize("version", [0, 1, 9, 13])
def test_null_or_empty_topic_list_means_all_topics_or_none(raw: RawClient, version: int) -> None:
    topic = create_topic(raw)
    everything = raw.call("metadata", version, topics=[] if version == 0 else None)
    assert topic.name in [t.name for t in everything.topics]
    if version >= 1:
        assert raw.call("metadata", version, topics=[]).topics == []


def test_unknown_topic_without_auto_creation(raw: RawClient) -> None:
    name = unique("nowhere")
    (found,) = raw.call("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics
    assert (found.error_code, found.name, found.topic_id) == (E.unknown_topic_or_partition, name, None)
    assert found.partitions == []
    assert name not in [t.name for t in raw.call("metadata", 12, topics=None).topics]


def test_metadata_creates_the_topic_when_allowed(raw: RawClient) -> None:
    name = unique("auto")
    (first,) = raw.call("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=True).topics
    assert first.error_code in (E.unknown_topic_or_partition, E.leader_not_available, E.none)
    assert eventually(lambda: topic_is_ready(raw, name, 1))


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250, "slash/ed"])
def test_invalid_topic_names(raw: RawClient, name: str) -> None:
    (found,) = raw.call("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=True).topics
    assert (found.error_code, found.name) == (E.invalid_topic_exception, name)


def test_old_versions_refuse_topic_ids_and_null_names(cluster: Cluster) -> None:
    with cluster.connect() as raw:
        response = raw.call("metadata", 11, topics=[{"topic_id": uuid4(), "name": "x"}])
        assert response.topics[0].error_code == E.invalid_request


def test_authorized_operations_when_asked_for(raw: RawClient) -> None:
    topic = create_topic(raw)
    asked = raw.call("metadata", 12, topics=[{"name": topic.name}], include_topic_authorized_operations=True)
    assert asked.topics[0].topic_authorized_operations == 3576  # every operation that a topic has
    old = raw.call("metadata", 9, topics=[{"name": topic.name}], include_cluster_authorized_operations=True)
    assert old.cluster_authorized_operations == 8096


def test_internal_topics_are_marked(raw: RawClient) -> None:
    raw.call("find_coordinator", 4, key_type=0, coordinator_keys=[unique("group")])

    def marked() -> bool:
        (found,) = raw.call("metadata", 12, topics=[{"name": "__consumer_offsets"}]).topics
        return bool(found.error_code == E.none and found.is_internal and len(found.partitions) == 3)

    assert eventually(marked)


def test_the_same_topic_twice_is_answered_once(raw: RawClient) -> None:
    topic = create_topic(raw)
    assert len(raw.call("metadata", 12, topics=[{"name": topic.name}, {"name": topic.name}]).topics) == 1


class TestDescribeTopicPartitions:
    def test_topics_sorted_with_all_their_partitions(self, raw: RawClient) -> None:
        first, second = sorted([create_topic(raw, partitions=3), create_topic(raw, partitions=1)], key=lambda t: t.name)
        response = raw.call("describe_topic_partitions", 0, topics=[{"name": second.name}, {"name": first.name}])
        assert [t.name for t in response.topics] == [first.name, second.name]
        assert [t.topic_id for t in response.topics] == [first.id, second.id]
        assert response.next_cursor is None
        (part, *_) = response.topics[0].partitions
        assert (part.error_code, part.leader_id, part.leader_epoch) == (E.none, 1, 0)
        assert (part.replica_nodes, part.isr_nodes, part.offline_replicas) == ([1], [1], [])
        assert (part.eligible_leader_replicas, part.last_known_elr) == ([], [])

    def test_a_limit_returns_a_cursor_to_go_on_from(self, raw: RawClient) -> None:
        topic = create_topic(raw, partitions=5)
        request = {"topics": [{"name": topic.name}], "response_partition_limit": 2}
        seen, cursor, rounds = [], None, 0
        while True:
            response = raw.call("describe_topic_partitions", 0, **request, cursor=cursor)
            seen += [p.partition_index for p in response.topics[0].partitions]
            rounds += 1
            if response.next_cursor is None:
                break
            cursor = vars(response.next_cursor)
        assert (seen, rounds) == ([0, 1, 2, 3, 4], 3)

    def test_unknown_and_invalid_names(self, raw: RawClient) -> None:
        name = unique("nowhere")
        (unknown,) = raw.call("describe_topic_partitions", 0, topics=[{"name": name}]).topics
        assert (unknown.error_code, unknown.partitions) == (E.unknown_topic_or_partition, [])
        (invalid,) = raw.call("describe_topic_partitions", 0, topics=[{"name": "a b"}]).topics
        assert invalid.error_code == E.invalid_topic_exception

    def test_no_topics_means_all(self, raw: RawClient) -> None:
        topic = create_topic(raw)
        names: set[str] = set()
        cursor = None
        while True:
            response = raw.call("describe_topic_partitions", 0, topics=[], cursor=cursor)
            names |= {t.name for t in response.topics}
            if response.next_cursor is None:
                break
            cursor = vars(response.next_cursor)
        assert topic.name in names


class TestDescribeCluster:
    @pytest.mark.parametrize("version", range(3))
    def test_brokers_and_ids(self, cluster: Cluster, raw: RawClient, version: int) -> None:
        response = raw.call("describe_cluster", version)
        assert response.error_code == E.none
        assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(1, "127.0.0.1", port(cluster))]
        assert response.controller_id == 1
        assert response.cluster_id == raw.call("metadata", 12, topics=[]).cluster_id
        assert response.cluster_authorized_operations == NOT_ASKED

    def test_authorized_operations(self, raw: RawClient) -> None:
        response = raw.call("describe_cluster", 2, include_cluster_authorized_operations=True)
        assert response.cluster_authorized_operations == 8096

    def test_the_controllers_endpoints_are_not_here(self, raw: RawClient) -> None:
        response = raw.call("describe_cluster", 1, endpoint_type=2)
        assert response.error_code == E.mismatched_endpoint_type
        assert raw.call("describe_cluster", 1, endpoint_type=9).error_code == E.unsupported_endpoint_type

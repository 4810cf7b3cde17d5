"""Log dirs, leader elections, reassignments, client quotas, the quorum and feature levels of a one-node cluster."""

from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.batches import batch
from support.cluster import Cluster, Topic, create_topic, eventually, fetch, produce, unique
from support.raw import RawClient


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    return create_topic(raw, partitions=2)


class TestDescribeLogDirs:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_sizes_of_the_partitions_asked_for(self, raw: RawClient, topic: Topic, version: int) -> None:
        data = batch([b"x" * 100])
        produce(raw, topic, data=data)
        wanted = [{"topic": topic.name, "partitions": [0, 1, 7]}]
        response = raw.call("describe_log_dirs", version, topics=wanted)
        (folder,) = response.results
        assert (folder.error_code, folder.log_dir.startswith("/")) == (E.none, True)
        (found,) = folder.topics
        sizes = {p.partition_index: (p.partition_size, p.offset_lag, p.is_future_key) for p in found.partitions}
        assert (found.name, sizes) == (topic.name, {0: (len(data), 0, False), 1: (0, 0, False)})
        if version >= 3:
            assert response.error_code == E.none
        if version >= 4:
            assert folder.total_bytes >= folder.usable_bytes > 0

    def test_null_means_all_and_empty_none(self, raw: RawClient, topic: Topic) -> None:
        everything = raw.call("describe_log_dirs", 4, topics=None).results[0].topics
        assert topic.name in [found.name for found in everything]
        assert raw.call("describe_log_dirs", 4, topics=[]).results[0].topics == []


class TestElectLeaders:
    @pytest.mark.parametrize("version", range(3))
    def test_the_one_broker_leads_already(self, raw: RawClient, topic: Topic, version: int) -> None:
        where = [{"topic": topic.name, "partitions": [0, 9]}]
        response = raw.call("elect_leaders", version, topic_partitions=where, timeout=5000)
        (answer,) = response.replica_election_results
        errors = {part.partition_id: part.error_code for part in answer.partition_result}
        assert errors == {0: E.election_not_needed, 9: E.unknown_topic_or_partition}
        if version >= 1:
            assert response.error_code == E.none

    def test_unclean(self, raw: RawClient, topic: Topic) -> None:
        where = [{"topic": topic.name, "partitions": [1]}]
        response = raw.call("elect_leaders", 2, election_type=1, topic_partitions=where, timeout=5000)
        assert response.replica_election_results[0].partition_result[0].error_code == E.election_not_needed

    def test_all_partitions_leave_out_those_with_nothing_to_do(self, raw: RawClient, topic: Topic) -> None:
        response = raw.call("elect_leaders", 2, election_type=0, topic_partitions=None, timeout=5000)
        assert response.error_code == E.none
        assert [part for answer in response.replica_election_results for part in answer.partition_result] == []

    def test_refused(self, raw: RawClient, topic: Topic) -> None:
        where = [{"topic": unique("nowhere"), "partitions": [0]}]
        unknown = raw.call("elect_leaders", 2, topic_partitions=where, timeout=5000)
        assert unknown.replica_election_results[0].partition_result[0].error_code == E.unknown_topic_or_partition
        bad = raw.call("elect_leaders", 2, election_type=5, topic_partitions=where, timeout=5000)
        assert bad.error_code == E.invalid_request


class TestReassignments:
    @pytest.mark.parametrize(
        ("replicas", "error"),
        [
            ([1], E.none),
            ([2], E.invalid_replica_assignment),
            ([1, 2], E.invalid_replica_assignment),
            ([1, 1], E.invalid_replica_assignment),
            ([], E.invalid_replica_assignment),
            (None, E.no_reassignment_in_progress),
        ],
    )
    @pytest.mark.parametrize("version", [0, 1])
    def test_only_the_one_broker_will_do(
        self, raw: RawClient, topic: Topic, replicas: list[int] | None, error: E, version: int
    ) -> None:
        where = [{"name": topic.name, "partitions": [{"partition_index": 0, "replicas": replicas}]}]
        response = raw.call("alter_partition_reassignments", version, timeout=5000, topics=where)
        assert response.error_code == E.none
        assert response.responses[0].partitions[0].error_code == error

    def test_unknown_topics_and_partitions(self, raw: RawClient, topic: Topic) -> None:
        for name, index in ((unique("nowhere"), 0), (topic.name, 9)):
            where = [{"name": name, "partitions": [{"partition_index": index, "replicas": [1]}]}]
            response = raw.call("alter_partition_reassignments", 1, timeout=5000, topics=where)
            assert response.responses[0].partitions[0].error_code == E.unknown_topic_or_partition

    def test_none_is_under_way(self, raw: RawClient, topic: Topic) -> None:
        for where in (None, [{"name": topic.name, "partition_indexes": [0]}], [{"name": "nowhere-at-all"}]):
            response = raw.call("list_partition_reassignments", 0, topics=where, timeout=5000)
            assert (response.error_code, response.topics) == (E.none, [])


class TestDescribeQuorum:
    @pytest.mark.parametrize("version", range(3))
    def test_one_voter_that_leads(self, raw: RawClient, version: int) -> None:
        where = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        response = raw.call("describe_quorum", version, topics=where)
        assert response.error_code == E.none
        (part,) = response.topics[0].partitions
        assert (part.error_code, part.leader_id, part.partition_index) == (E.none, 1, 0)
        assert part.leader_epoch > 0
        (voter,) = part.current_voters
        assert (voter.replica_id, part.observers) == (1, [])
        assert voter.log_end_offset >= part.high_watermark > 0
        if version >= 1:
            assert voter.last_caught_up_timestamp > 0
        if version >= 2:
            assert [node.node_id for node in response.nodes] == [1]

    def test_of_another_topic(self, raw: RawClient, topic: Topic) -> None:
        where = [{"topic_name": topic.name, "partitions": [{"partition_index": 0}]}]
        response = raw.call("describe_quorum", 2, topics=where)
        assert response.topics[0].partitions[0].error_code == E.unknown_topic_or_partition


class TestUpdateFeatures:
    @pytest.mark.parametrize(
        ("feature", "level", "upgrade_type", "error"),
        [
            ("metadata.version", 30, 1, E.none),
            ("metadata.version", 31, 1, E.invalid_update_version),
            ("metadata.version", 29, 1, E.invalid_update_version),
            ("transaction.version", 2, 1, E.none),
            ("transaction.version", 1, 1, E.invalid_update_version),
            ("transaction.version", 1, 2, E.none),
            ("no.such.feature", 1, 1, E.invalid_update_version),
        ],
    )
    @pytest.mark.parametrize("version", [1, 2])
    def test_validation(
        self, raw: RawClient, feature: str, level: int, upgrade_type: int, error: E, version: int
    ) -> None:
        update = {"feature": feature, "max_version_level": level, "upgrade_type": upgrade_type}
        response = raw.call("update_features", version, feature_updates=[update], validate_only=True)
        assert response.error_code == error
        assert bool(response.error_message) == (error != E.none)
        if version == 1 and error == E.none:
            assert [(r.feature, r.error_code) for r in response.results] == [(feature, E.none)]


def by_client_id(name: str | None, match_type: int = 0) -> dict[str, Any]:
    return {"entity_type": "client-id", "match_type": match_type, "match": name}


class TestClientQuotas:
    @pytest.fixture
    def client(self, raw: RawClient) -> Iterator[str]:
        name = unique("client")
        yield name
        names = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
        self.alter(raw, name, *[(key, None) for key in names])

    def alter(self, raw: RawClient, client: str | None, *ops: tuple[str, float | None], **options: Any) -> Any:
        entity = [{"entity_type": "client-id", "entity_name": client}]
        changes = [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops]
        version = options.pop("version", 1)
        entries = [{"entity": entity, "ops": changes}]
        (answer,) = raw.call("alter_client_quotas", version, entries=entries, **options).entries
        return answer

    def described(self, raw: RawClient, *components: dict[str, Any], **options: Any) -> dict[str, dict[str, float]]:
        version = options.pop("version", 1)
        response = raw.call("describe_client_quotas", version, components=list(components), **options)
        assert response.error_code == E.none
        return {
            ",".join(f"{e.entity_type}={e.entity_name}" for e in entry.entity): {v.key: v.value for v in entry.values}
            for entry in response.entries
        }

    @pytest.mark.parametrize("version", [0, 1])
    def test_set_and_removed(self, raw: RawClient, client: str, version: int) -> None:
        wanted = {"producer_byte_rate": 1000.0, "request_percentage": 50.5}
        answer = self.alter(raw, client, *wanted.items(), version=version)
        assert (answer.error_code, answer.entity[0].entity_name) == (E.none, client)
        key = f"client-id={client}"
        assert eventually(lambda: self.described(raw, by_client_id(client), version=version) == {key: wanted})
        assert self.described(raw, by_client_id(None, 2))[key] == wanted
        assert self.described(raw)[key] == wanted
        assert key not in self.described(raw, strict=True)
        assert key not in self.described(raw, by_client_id(None, 1))
        self.alter(raw, client, *[(name, None) for name in wanted])
        assert eventually(lambda: self.described(raw, by_client_id(client)) == {})

    def test_validate_only(self, raw: RawClient, client: str) -> None:
        assert self.alter(raw, client, ("producer_byte_rate", 5.0), validate_only=True).error_code == E.none
        assert self.described(raw, by_client_id(client)) == {}

    @pytest.mark.parametrize(
        ("entity", "key", "value"),
        [
            ([("client-id", "x")], "no_such_quota", 1.0),
            ([("client-id", "x")], "producer_byte_rate", -1.0),
            ([("client-id", "x")], "producer_byte_rate", 0.0),
            ([("client-id", "x")], "producer_byte_rate", 1.5),
            ([("client-id", "x")], "connection_creation_rate", 1.0),
            ([("client-id", "")], "producer_byte_rate", 1.0),
            ([("planet", "x")], "producer_byte_rate", 1.0),
            ([("ip", "127.0.0.9")], "producer_byte_rate", 1.0),
            ([("ip", "not an ip")], "connection_creation_rate", 1.0),
            ([], "producer_byte_rate", 1.0),
        ],
    )
    def test_refused(self, raw: RawClient, entity: list[tuple[str, str]], key: str, value: float) -> None:
        who = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
        entry = {"entity": who, "ops": [{"key": key, "value": value, "remove": False}]}
        (answer,) = raw.call("alter_client_quotas", 1, entries=[entry]).entries
        assert answer.error_code == E.invalid_request
        assert answer.error_message

    @pytest.mark.parametrize(
        ("components", "error"),
        [
            ([{"entity_type": "planet", "match_type": 0, "match": "x"}], E.unsupported_version),
            ([by_client_id("x", 9)], E.invalid_request),
            ([by_client_id("x"), by_client_id("y")], E.invalid_request),
            ([{"entity_type": "", "match_type": 0, "match": "x"}], E.invalid_request),
        ],
    )
    def test_refused_filters(self, raw: RawClient, components: list[dict[str, Any]], error: E) -> None:
        response = raw.call("describe_client_quotas", 1, components=components)
        assert (response.error_code, response.entries) == (error, None)

    def test_a_producer_above_its_quota_is_throttled(self, cluster: Cluster, raw: RawClient, client: str) -> None:
        topic = create_topic(raw)
        self.alter(raw, client, ("producer_byte_rate", 10_000.0))
        eventually(lambda: self.described(raw, by_client_id(client)))
        with cluster.connect(client_id=client) as limited:
            part = {"index": 0, "records": batch([b"x" * 150_000])}
            data = [{"name": topic.name, "partition_data": [part]}]
            response = limited.call("produce", 12, acks=1, timeout=5000, topic_data=data)
            assert response.responses[0].partition_responses[0].error_code == E.none
            assert response.throttle_time > 0
            # The connection is muted for that long: the next answer comes late.
            limited.send("api_versions", 0)
            assert limited.has_nothing_to_read(min(0.2, response.throttle_time / 2000))
        assert produce(raw, topic, b"x" * 10_000).error_code == E.none

    def test_a_consumer_above_its_quota_is_throttled(self, cluster: Cluster, raw: RawClient, client: str) -> None:
        topic = create_topic(raw)
        produce(raw, topic, b"x" * 150_000)
        self.alter(raw, client, ("consumer_byte_rate", 10_000.0))
        eventually(lambda: self.described(raw, by_client_id(client)))
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        where = [{"topic_id": topic.id, "partitions": [part]}]
        with cluster.connect(client_id=client) as limited:
            response = limited.call("fetch", 17, max_wait=100, min_bytes=1, topics=where)
            throttled = response.throttle_time
        assert throttled > 0
        assert fetch(raw, topic).error_code == E.none

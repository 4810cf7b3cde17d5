"""OffsetCommit, OffsetFetch and OffsetDelete."""

from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, Topic, create_topic, eventually, find_coordinator, unique
from support.groups import Member, subscription
from support.raw import RawClient


@pytest.fixture
def group(raw: RawClient) -> str:
    name = unique("group")
    find_coordinator(raw, 0, name)
    return name


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    return create_topic(raw, partitions=3)


def commit(
    raw: RawClient,
    group: str,
    topic: Topic,
    offset: int = 5,
    *,
    partition: int = 0,
    metadata: str | None = "note",
    version: int = 9,
    **identity: Any,
) -> E:
    part = {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
    where = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
    who = {"generation_id_or_member_epoch": -1, "member_id": "", **identity}
    response = raw.call("offset_commit", version, group_id=group, **who, topics=[{**where, "partitions": [part]}])
    error: E = response.topics[0].partitions[0].error_code
    return error


def fetched(raw: RawClient, group: str, topic: Topic, partition: int = 0, **options: Any) -> Any:
    wanted = [{"name": topic.name, "partition_indexes": [partition]}]
    (answer,) = raw.call("offset_fetch", 9, groups=[{"group_id": group, "topics": wanted}], **options).groups
    assert answer.error_code == E.none
    return answer.topics[0].partitions[0]


class TestCommit:
    @pytest.mark.parametrize("version", range(2, 11))
    def test_by_an_outsider_in_every_version(self, raw: RawClient, group: str, topic: Topic, version: int) -> None:
        assert commit(raw, group, topic, 42, version=version) == E.none
        found = fetched(raw, group, topic)
        assert (found.error_code, found.committed_offset, found.metadata) == (E.none, 42, "note")
        assert found.committed_leader_epoch == -1

    def test_the_leader_epoch_and_null_metadata(self, raw: RawClient, group: str, topic: Topic) -> None:
        part = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": 7, "committed_metadata": None}
        where = [{"name": topic.name, "partitions": [part]}]
        raw.call("offset_commit", 9, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=where)
        found = fetched(raw, group, topic)
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (3, 7, "")

    def test_unknown_topics_and_partitions(self, raw: RawClient, group: str, topic: Topic) -> None:
        assert commit(raw, group, topic, partition=9) == E.unknown_topic_or_partition
        assert commit(raw, group, Topic(unique("nowhere"), uuid4())) == E.unknown_topic_or_partition
        assert commit(raw, group, Topic("x", uuid4()), version=10) == E.unknown_topic_id

    def test_too_much_metadata(self, raw: RawClient, group: str, topic: Topic) -> None:
        assert commit(raw, group, topic, metadata="x" * 4096) == E.none
        assert commit(raw, group, topic, metadata="x" * 4097) == E.offset_metadata_too_large

    def test_identity_of_a_group_that_is_not_there(self, raw: RawClient, group: str, topic: Topic) -> None:
        who: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": "ghost"}
        assert commit(raw, group, topic, version=8, **who) == E.illegal_generation
        assert commit(raw, group, topic, version=9, **who) == E.group_id_not_found
        assert commit(raw, group, topic, version=10, **who) == E.group_id_not_found

    def test_by_members(self, cluster: Cluster, raw: RawClient, group: str, topic: Topic) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            me: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
            assert commit(raw, group, topic, 9, **me) == E.none
            assert fetched(raw, group, topic).committed_offset == 9
            assert commit(raw, group, topic, **{**me, "generation_id_or_member_epoch": 2}) == E.illegal_generation
            assert commit(raw, group, topic, **{**me, "member_id": "ghost"}) == E.unknown_member_id
            assert commit(raw, group, topic) == E.unknown_member_id
            assert commit(raw, group, topic, **me, group_instance_id="ghost") == E.unknown_member_id

    def test_between_join_and_sync(self, cluster: Cluster, raw: RawClient, group: str, topic: Topic) -> None:
        with Member(cluster, group) as member:
            member.join()
            me: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
            assert commit(raw, group, topic, **me) == E.rebalance_in_progress

    def test_an_empty_group_id_is_a_group_id(self, raw: RawClient, topic: Topic) -> None:
        find_coordinator(raw, 0, "")
        assert commit(raw, "", topic, 8) == E.none
        assert fetched(raw, "", topic).committed_offset == 8

    def test_several_partitions_each_for_itself(self, raw: RawClient, group: str, topic: Topic) -> None:
        parts = [
            {"partition_index": n, "committed_offset": n, "committed_metadata": "x" * length}
            for n, length in enumerate((1, 5000, 1))
        ]
        where = [{"name": topic.name, "partitions": parts}]
        response = raw.call(
            "offset_commit", 9, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=where
        )
        errors = [part.error_code for part in response.topics[0].partitions]
        assert errors == [E.none, E.offset_metadata_too_large, E.none]
        assert [fetched(raw, group, topic, n).committed_offset for n in range(3)] == [0, -1, 2]


class TestFetch:
    @pytest.mark.parametrize("version", range(1, 8))
    def test_one_group(self, raw: RawClient, group: str, topic: Topic, version: int) -> None:
        commit(raw, group, topic, 42)
        wanted = [{"name": topic.name, "partition_indexes": [0, 1]}]
        response = raw.call("offset_fetch", version, group_id=group, topics=wanted)
        found = [
            (p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in response.topics[0].partitions
        ]
        assert found == [(0, 42, "note", E.none), (1, -1, "", E.none)]
        if version >= 2:
            assert response.error_code == E.none

    @pytest.mark.parametrize("version", range(8, 11))
    def test_several_groups(self, raw: RawClient, group: str, topic: Topic, version: int) -> None:
        other = unique("group")
        commit(raw, group, topic, 42)
        where = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
        wanted = [{**where, "partition_indexes": [0]}]
        groups = [{"group_id": name, "topics": wanted} for name in (group, other)]
        response = raw.call("offset_fetch", version, groups=groups)
        found = {g.group_id: g.topics[0].partitions[0].committed_offset for g in response.groups}
        assert found == {group: 42, other: -1}
        assert {g.error_code for g in response.groups} == {E.none}

    @pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
    def test_all_topics(self, raw: RawClient, group: str, topic: Topic, version: int) -> None:
        commit(raw, group, topic, 1, partition=1)
        commit(raw, group, topic, 2, partition=2)
        if version < 8:
            answer = raw.call("offset_fetch", version, group_id=group, topics=None)
        else:
            answer = raw.call("offset_fetch", version, groups=[{"group_id": group, "topics": None}]).groups[0]
        (found,) = answer.topics
        assert (found.topic_id if version >= 10 else found.name) == (topic.id if version >= 10 else topic.name)
        assert sorted((p.partition_index, p.committed_offset) for p in found.partitions) == [(1, 1), (2, 2)]

    def test_unknown_topics_and_ids(self, raw: RawClient, group: str) -> None:
        found = fetched(raw, group, Topic(unique("nowhere"), uuid4()))
        assert (found.error_code, found.committed_offset) == (E.none, -1)
        wanted = [{"topic_id": uuid4(), "partition_indexes": [0]}]
        (answer,) = raw.call("offset_fetch", 10, groups=[{"group_id": group, "topics": wanted}]).groups
        assert answer.topics[0].partitions[0].error_code == E.unknown_topic_id

    def test_require_stable_without_open_transactions(self, raw: RawClient, group: str, topic: Topic) -> None:
        commit(raw, group, topic, 42)
        assert fetched(raw, group, topic, require_stable=True).committed_offset == 42

    def test_member_ids_are_not_checked_for_classic_groups(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic
    ) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            wanted = [{"name": topic.name, "partition_indexes": [0]}]
            request = {"group_id": group, "member_id": "ghost", "member_epoch": 5, "topics": wanted}
            (answer,) = raw.call("offset_fetch", 9, groups=[request]).groups
            assert answer.error_code == E.none

    def test_offsets_go_with_their_topic(self, raw: RawClient, group: str, topic: Topic) -> None:
        commit(raw, group, topic, 42)
        raw.call("delete_topics", 6, topics=[{"name": topic.name}], timeout=30000)

        def gone() -> bool:
            (answer,) = raw.call("offset_fetch", 9, groups=[{"group_id": group, "topics": None}]).groups
            return bool(answer.topics == [])

        assert eventually(gone)


class TestDelete:
    def delete(self, raw: RawClient, group: str, topic: Topic, *partitions: int) -> Any:
        parts = [{"partition_index": partition} for partition in partitions]
        return raw.call("offset_delete", 0, group_id=group, topics=[{"name": topic.name, "partitions": parts}])

    def test_of_an_empty_group(self, raw: RawClient, group: str, topic: Topic) -> None:
        commit(raw, group, topic, 42)
        response = self.delete(raw, group, topic, 0, 1)
        assert response.error_code == E.none
        assert [(p.partition_index, p.error_code) for p in response.topics[0].partitions] == [(0, E.none), (1, E.none)]
        assert fetched(raw, group, topic).committed_offset == -1

    def test_unknown_group_topic_and_partition(self, raw: RawClient, group: str, topic: Topic) -> None:
        assert self.delete(raw, unique("nowhere"), topic, 0).error_code == E.group_id_not_found
        commit(raw, group, topic, 1)
        unknown = self.delete(raw, group, topic, 77)
        assert [p.error_code for p in unknown.topics[0].partitions] == [E.unknown_topic_or_partition]
        nowhere = self.delete(raw, group, Topic(unique("nowhere"), uuid4()), 0)
        assert [p.error_code for p in nowhere.topics[0].partitions] == [E.unknown_topic_or_partition]

    def test_of_a_group_that_is_not_a_consumer_group(
        self, cluster: Cluster, raw: RawClient, group: str, topic: Topic
    ) -> None:
        with Member(cluster, group, protocol_type="connect") as member:
            member.join()
            assert self.delete(raw, group, topic, 0).error_code == E.non_empty_group

    def test_of_a_topic_that_is_subscribed(self, cluster: Cluster, raw: RawClient, group: str, topic: Topic) -> None:
        other = create_topic(raw)
        with Member(cluster, group, protocols=(("range", subscription(topic.name)),)) as member:
            member.join_alone()
            me: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
            commit(raw, group, topic, 1, **me)
            commit(raw, group, other, 1, **me)
            busy = self.delete(raw, group, topic, 0)
            assert [p.error_code for p in busy.topics[0].partitions] == [E.group_subscribed_to_topic]
            free = self.delete(raw, group, other, 0)
            assert [p.error_code for p in free.topics[0].partitions] == [E.none]

"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: the consumer protocol (KIP-848)."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, Topic, create_topic, eventually, find_coordinator, unique
from support.groups import join_request
from support.raw import RawClient

GROUP_RESOURCE = 32


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def topic(raw: RawClient) -> Topic:
    return create_topic(raw, partitions=4)


@pytest.fixture
def group(raw: RawClient) -> str:
    name = unique("group")
    find_coordinator(raw, 0, name)
    return name


class Consumer:
    """A member of a consumer group that does what the coordinator tells it, one heartbeat at a time."""

    def __init__(self, cluster: Cluster, group: str, *topics: Topic, **options: Any) -> None:
        self.raw = cluster.connect(client_id=f"client-of-{group}")
        self.group = group
        self.member_id = str(uuid4())
        self.epoch = 0
        self.topics = topics
        self.options = options
        self.owned: set[tuple[Any, int]] = set()

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def call(self, **changes: Any) -> Any:
        who = {"group_id": self.group, "member_id": self.member_id, "member_epoch": self.epoch}
        request = {**who, "topic_partitions": None, **changes}
        return self.raw.call("consumer_group_heartbeat", 1, **request)

    def first_request(self) -> dict[str, Any]:
        names = [topic.name for topic in self.topics]
        return {"rebalance_timeout": 5000, "subscribed_topic_names": names, "topic_partitions": [], **self.options}

    def join(self, **changes: Any) -> Any:
        self.epoch = 0
        return self.take(self.call(**{**self.first_request(), **changes}))

    def beat(self) -> Any:
        """One heartbeat that also acknowledges what is owned."""
        return self.take(self.call(topic_partitions=self.owned_as_request()))

    def take(self, answer: Any) -> Any:
        if answer.error_code == E.none:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                parts = answer.assignment.topic_partitions
                self.owned = {(part.topic_id, index) for part in parts for index in part.partitions}
        return answer

    def owned_as_request(self) -> list[dict[str, Any]]:
        ids = {topic_id for topic_id, _ in self.owned}
        return [{"topic_id": one, "partitions": sorted(n for i, n in self.owned if i == one)} for one in ids]

    def leave(self, epoch: int = -1) -> Any:
        return self.call(member_epoch=epoch, instance_id=self.options.get("instance_id"))


def partitions_of(topic: Topic, count: int = 4) -> set[tuple[Any, int]]:
    return {(topic.id, index) for index in range(count)}


def describe(raw: RawClient, group: str) -> Any:
    return raw.call("consumer_group_describe", 1, group_ids=[group]).groups[0]


def converge(*consumers: Consumer) -> None:
    """Heartbeats until every partition has one owner and nobody is told anything new."""

    def settled() -> bool:
        answers = [consumer.beat() for consumer in consumers]
        assert {answer.error_code for answer in answers} == {E.none}
        found = describe(consumers[0].raw, consumers[0].group)
        return bool(found.group_state == "Stable" and len(found.members) == len(consumers))

    eventually(settled)


class TestJoining:
    @pytest.mark.parametrize("version", [0, 1])
    def test_the_first_member_gets_everything(self, raw: RawClient, group: str, topic: Topic, version: int) -> None:
        request = {"rebalance_timeout": 5000, "subscribed_topic_names": [topic.name], "topic_partitions": []}
        member = "" if version == 0 else str(uuid4())
        answer = raw.call("consumer_group_heartbeat", version, group_id=group, member_id=member, **request)
        assert (answer.error_code, answer.heartbeat_interval) == (E.none, 5000)
        assert answer.member_epoch > 0
        assert answer.member_id == member or (version == 0 and answer.member_id)
        (assigned,) = answer.assignment.topic_partitions
        assert (assigned.topic_id, sorted(assigned.partitions)) == (topic.id, [0, 1, 2, 3])

    def test_a_heartbeat_with_nothing_new_has_no_assignment(
        self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        epoch = consumer.join().member_epoch
        answer = consumer.beat()
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (E.none, epoch, None)
        assert consumer.call().error_code == E.none

    def test_two_members_share(self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic) -> None:
        first, second = (stack.enter_context(Consumer(cluster, group, topic)) for _ in range(2))
        first.join()
        second.join()
        converge(first, second)
        assert (len(first.owned), len(second.owned)) == (2, 2)
        assert first.owned | second.owned == partitions_of(topic)

    def test_partitions_move_only_after_their_owner_let_go(
        self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic
    ) -> None:
        first, second = (stack.enter_context(Consumer(cluster, group, topic)) for _ in range(2))
        first.join()
        second.join()
        # The first member is silent: all that it had stays with it, though the target says otherwise.
        eventually(lambda: second.beat() and second.epoch == describe(second.raw, group).group_epoch)
        assert second.owned == set()
        held = set(first.owned)
        assert held == partitions_of(topic)
        eventually(lambda: first.take(first.call()) and len(first.owned) == 2)
        second.beat()
        assert second.owned == set()
        first.beat()
        eventually(lambda: second.beat() and len(second.owned) == 2)
        assert second.owned == held - first.owned

    def test_a_member_that_leaves_gives_its_partitions_back(
        self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic
    ) -> None:
        first, second = (stack.enter_context(Consumer(cluster, group, topic)) for _ in range(2))
        first.join()
        second.join()
        converge(first, second)
        left = second.leave()
        assert (left.error_code, left.member_epoch) == (E.none, -1)
        converge(first)
        assert first.owned == partitions_of(topic)
        assert second.call().error_code == E.unknown_member_id

    @pytest.mark.parametrize("assignor", ["range", "uniform"])
    def test_the_assignor_may_be_chosen(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic, assignor: str
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic, server_assignor=assignor))
        consumer.join()
        assert describe(raw, group).assignor_name == assignor
        assert consumer.owned == partitions_of(topic)

    def test_range_gives_each_member_a_run_of_partitions(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        other = create_topic(raw, partitions=4)
        options = {"server_assignor": "range"}
        pair = [stack.enter_context(Consumer(cluster, group, topic, other, **options)) for _ in range(2)]
        for consumer in pair:
            consumer.join()
        converge(*pair)
        halves = {frozenset(index for _, index in consumer.owned) for consumer in pair}
        assert halves == {frozenset({0, 1}), frozenset({2, 3})}
        assert [len(consumer.owned) for consumer in pair] == [4, 4]

    def test_new_partitions_are_assigned(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        consumer.join()
        raw.call("create_partitions", 3, topics=[{"name": topic.name, "count": 6, "assignments": None}], timeout=30000)
        assert eventually(lambda: consumer.beat() and consumer.owned == partitions_of(topic, 6))

    def test_a_topic_that_appears_later_is_assigned(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str
    ) -> None:
        name = unique("later")
        consumer = stack.enter_context(Consumer(cluster, group, Topic(name, uuid4())))
        assert consumer.join().assignment.topic_partitions == []
        made = create_topic(raw, partitions=2, name=name)
        assert eventually(lambda: consumer.beat() and consumer.owned == partitions_of(made, 2))

    def test_a_changed_subscription(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        other = create_topic(raw)
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        consumer.join()
        consumer.take(consumer.call(subscribed_topic_names=[other.name], topic_partitions=consumer.owned_as_request()))
        assert eventually(lambda: consumer.beat() and consumer.owned == {(other.id, 0)})

    def test_a_regular_expression(self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str) -> None:
        prefix = unique("regex")
        matching = [create_topic(raw, name=f"{prefix}-{letter}") for letter in "ab"]
        create_topic(raw, name=f"other-{prefix}")
        options: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": f"{prefix}-[a-c]"}
        consumer = stack.enter_context(Consumer(cluster, group, **options))
        assert consumer.join().error_code == E.none
        wanted = {(topic.id, 0) for topic in matching}
        assert eventually(lambda: consumer.beat() and consumer.owned == wanted)
        assert describe(raw, group).members[0].subscribed_topic_regex == f"{prefix}-[a-c]"


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            pytest.param({"group_id": ""}, E.invalid_request, id="empty group id"),
            pytest.param({"member_id": ""}, E.invalid_request, id="empty member id"),
            pytest.param({"instance_id": ""}, E.invalid_request, id="empty instance id"),
            pytest.param({"rebalance_timeout": -1}, E.invalid_request, id="no rebalance time-out"),
            pytest.param({"subscribed_topic_names": None}, E.invalid_request, id="no subscription"),
            pytest.param({"topic_partitions": None}, E.invalid_request, id="no partitions list"),
            pytest.param(
                {"topic_partitions": [{"topic_id": uuid4(), "partitions": [0]}]}, E.invalid_request, id="owning already"
            ),
            pytest.param({"server_assignor": "nope"}, E.unsupported_assignor, id="unknown assignor"),
            pytest.param({"member_epoch": -3}, E.invalid_request, id="impossible epoch"),
            pytest.param({"member_epoch": -2}, E.invalid_request, id="static leave without instance"),
            pytest.param(
                {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
                E.invalid_regular_expression,
                id="bad regular expression",
            ),
        ],
    )
    def test_first_heartbeats(
        self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic, changes: dict[str, Any], error: E
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        answer = consumer.join(**changes)
        assert (answer.error_code, answer.assignment) == (error, None)
        assert answer.error_message
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval) == (None, 0, 0)

    def test_epochs_are_checked(self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        epoch = consumer.join().member_epoch
        assert consumer.call(member_epoch=epoch + 50).error_code == E.fenced_member_epoch
        assert consumer.call(member_epoch=epoch - 1).error_code == E.fenced_member_epoch
        assert consumer.call().error_code == E.none

    def test_the_previous_epoch_is_taken_when_the_answer_was_lost(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        first, second = (stack.enter_context(Consumer(cluster, group, topic)) for _ in range(2))
        first.join()
        before = first.epoch
        second.join()
        converge(first, second)
        assert first.epoch > before
        mine = first.owned_as_request()
        answer = first.call(member_epoch=before, topic_partitions=mine)
        assert (answer.error_code, answer.member_epoch) == (E.none, first.epoch)

    def test_unknown_members(self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        assert consumer.call(member_epoch=5).error_code == E.group_id_not_found
        stack.enter_context(Consumer(cluster, group, topic)).join()
        assert consumer.call(member_epoch=5).error_code == E.unknown_member_id

    def test_a_classic_group_with_members_of_another_kind(self, raw: RawClient, group: str, topic: Topic) -> None:
        joining = join_request(group, protocol_type="connect", protocols=(("x", b""),))
        member = raw.call("join_group", 9, **joining).member_id
        raw.call("join_group", 9, **{**joining, "member_id": member})
        request = {"rebalance_timeout": 5000, "subscribed_topic_names": [topic.name], "topic_partitions": []}
        answer = raw.call("consumer_group_heartbeat", 1, group_id=group, member_id=str(uuid4()), **request)
        assert answer.error_code == E.group_id_not_found


class TestStaticMembers:
    def test_a_short_leave_keeps_the_partitions(
        self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic
    ) -> None:
        options = {"instance_id": "one"}
        first = stack.enter_context(Consumer(cluster, group, topic, **options))
        other = stack.enter_context(Consumer(cluster, group, topic, instance_id="two"))
        first.join()
        other.join()
        converge(first, other)
        held = set(first.owned)
        left = first.leave(epoch=-2)
        assert (left.error_code, left.member_epoch) == (E.none, -2)
        again = stack.enter_context(Consumer(cluster, group, topic, **options))
        assert again.join().error_code == E.none
        assert again.owned == held
        assert {m.instance_id for m in describe(again.raw, group).members} == {"one", "two"}

    def test_an_instance_that_has_not_left(self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic) -> None:
        options = {"instance_id": "one"}
        stack.enter_context(Consumer(cluster, group, topic, **options)).join()
        second = stack.enter_context(Consumer(cluster, group, topic, **options))
        assert second.join().error_code == E.unreleased_instance_id

    def test_the_replaced_member_is_fenced(self, cluster: Cluster, stack: ExitStack, group: str, topic: Topic) -> None:
        options = {"instance_id": "one"}
        first = stack.enter_context(Consumer(cluster, group, topic, **options))
        first.join()
        epoch = first.epoch
        first.leave(epoch=-2)
        stack.enter_context(Consumer(cluster, group, topic, **options)).join()
        assert first.call(member_epoch=epoch, instance_id="one").error_code == E.fenced_instance_id


class TestSessions:
    def test_a_silent_member_is_removed_after_the_groups_session_time_out(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        changes = [
            {"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "600"},
            {"name": "consumer.heartbeat.interval.ms", "config_operation": 0, "value": "200"},
        ]
        resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": changes}
        (answer,) = raw.call("incremental_alter_configs", 1, resources=[resource]).responses
        assert answer.error_code == E.none
        consumer = stack.enter_context(Consumer(cluster, group, topic))

        def with_the_groups_interval() -> bool:
            joined = consumer.join()
            return bool(joined.heartbeat_interval == 200)

        eventually(with_the_groups_interval)
        eventually(lambda: describe(raw, group).group_state == "Empty")
        assert consumer.call().error_code == E.unknown_member_id


class TestOffsets:
    def commit(self, raw: RawClient, group: str, topic: Topic, member: str, epoch: int) -> E:
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        who = {"generation_id_or_member_epoch": epoch, "member_id": member}
        response = raw.call("offset_commit", 9, group_id=group, **who, topics=where)
        error: E = response.topics[0].partitions[0].error_code
        return error

    def test_commits_carry_the_member_epoch(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        epoch = consumer.join().member_epoch
        assert self.commit(raw, group, topic, consumer.member_id, epoch) == E.none
        assert self.commit(raw, group, topic, consumer.member_id, epoch + 1) == E.stale_member_epoch
        assert self.commit(raw, group, topic, "ghost", epoch) == E.unknown_member_id
        assert self.commit(raw, group, topic, "", -1) == E.unknown_member_id

    def test_fetches_are_checked_if_they_name_a_member(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        epoch = consumer.join().member_epoch

        def fetch(member: str | None, epoch: int) -> E:
            wanted = [{"name": topic.name, "partition_indexes": [0]}]
            who = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": wanted}
            error: E = raw.call("offset_fetch", 9, groups=[who]).groups[0].error_code
            return error

        assert fetch(consumer.member_id, epoch) == E.none
        assert fetch(consumer.member_id, epoch + 9) == E.stale_member_epoch
        assert fetch("ghost", epoch) == E.unknown_member_id
        assert fetch(None, -1) == E.none


class TestDescribe:
    @pytest.mark.parametrize("version", [0, 1])
    def test_a_stable_group(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic, version: int
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        consumer.join()
        converge(consumer)
        (found,) = raw.call("consumer_group_describe", version, group_ids=[group]).groups
        assert (found.error_code, found.group_state, found.assignor_name) == (E.none, "Stable", "uniform")
        assert found.group_epoch == found.assignment_epoch == consumer.epoch
        (member,) = found.members
        assert (member.member_id, member.member_epoch) == (consumer.member_id, consumer.epoch)
        assert (member.client_id, member.client_host) == (f"client-of-{group}", "/127.0.0.1")
        assert member.subscribed_topic_names == [topic.name]
        (assigned,) = member.assignment.topic_partitions
        assert (assigned.topic_name, assigned.topic_id, sorted(assigned.partitions)) == (
            topic.name,
            topic.id,
            [0, 1, 2, 3],
        )
        assert member.target_assignment == member.assignment
        if version >= 1:
            assert member.member_type == 1

    def test_groups_of_another_kind_or_none(self, raw: RawClient, group: str) -> None:
        (unknown,) = raw.call("consumer_group_describe", 1, group_ids=[group]).groups
        assert (unknown.error_code, unknown.members) == (E.group_id_not_found, [])
        raw.call("join_group", 9, **join_request(group, instance="x"))
        (classic,) = raw.call("consumer_group_describe", 1, group_ids=[group]).groups
        assert classic.error_code == E.group_id_not_found

    def test_the_old_describe_does_not_know_it_but_the_list_does(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        consumer.join()
        (old,) = raw.call("describe_groups", 6, groups=[group]).groups
        assert (old.error_code, old.group_state) == (E.group_id_not_found, "Dead")
        listed = {g.group_id: g for g in raw.call("list_groups", 5, types_filter=["consumer"]).groups}
        assert (listed[group].protocol_type, listed[group].group_type) == ("consumer", "consumer")
        consumer.leave()
        assert describe(raw, group).group_state == "Empty"
        assert raw.call("delete_groups", 2, groups_names=[group]).results[0].error_code == E.none
        assert describe(raw, group).error_code == E.group_id_not_found

    def test_a_group_with_members_cannot_be_deleted(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        stack.enter_context(Consumer(cluster, group, topic)).join()
        assert raw.call("delete_groups", 2, groups_names=[group]).results[0].error_code == E.non_empty_group


class TestClassicMembersInAConsumerGroup:
    def test_a_classic_consumer_may_join_and_the_group_stays_a_consumer_group(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        consumer.join()
        answer = raw.call("join_group", 9, **join_request(group))
        assert answer.error_code == E.member_id_required
        assert answer.member_id

    def test_an_empty_classic_group_is_converted(
        self, cluster: Cluster, stack: ExitStack, raw: RawClient, group: str, topic: Topic
    ) -> None:
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        raw.call("offset_commit", 9, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=where)
        assert {g.group_id: g.group_type for g in raw.call("list_groups", 5).groups}[group] == "classic"
        consumer = stack.enter_context(Consumer(cluster, group, topic))
        assert consumer.join().error_code == E.none
        assert {g.group_id: g.group_type for g in raw.call("list_groups", 5).groups}[group] == "consumer"
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        (answer,) = raw.call("offset_fetch", 9, groups=[{"group_id": group, "topics": wanted}]).groups
        assert answer.topics[0].partitions[0].committed_offset == 5

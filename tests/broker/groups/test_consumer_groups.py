"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: what each request is answered, and what is written before."""

from typing import Any

import pytest

from millstream.broker.groups.consumer_states import MemberState
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.consumer_group_heartbeat import RequestTopicPartitions
from support.consumer_group import World

E = ErrorCode
JOIN: dict[str, Any] = {
    "member_id": "a",
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            pytest.param({"group_id": " "}, E.INVALID_REQUEST, id="blank group id"),
            pytest.param({"member_id": ""}, E.INVALID_REQUEST, id="no member id"),
            pytest.param({"instance_id": ""}, E.INVALID_REQUEST, id="empty instance id"),
            pytest.param({"rack_id": ""}, E.INVALID_REQUEST, id="empty rack id"),
            pytest.param({"rebalance_timeout_ms": -1}, E.INVALID_REQUEST, id="no rebalance time-out"),
            pytest.param({"topic_partitions": None}, E.INVALID_REQUEST, id="owned partitions not given"),
            pytest.param(
                {"topic_partitions": [RequestTopicPartitions(topic_id=ZERO_UUID, partitions=[0])]},
                E.INVALID_REQUEST,
                id="owns something",
            ),
            pytest.param({"subscribed_topic_names": None}, E.INVALID_REQUEST, id="no subscription"),
            pytest.param({"member_epoch": -2}, E.INVALID_REQUEST, id="static leave without instance id"),
            pytest.param({"member_epoch": -3}, E.INVALID_REQUEST, id="impossible epoch"),
            pytest.param({"server_assignor": "sticky"}, E.UNSUPPORTED_ASSIGNOR, id="unknown assignor"),
            pytest.param({"subscribed_topic_regex": "(a"}, E.INVALID_REGULAR_EXPRESSION, id="bad expression"),
            pytest.param({"member_epoch": 4}, E.GROUP_ID_NOT_FOUND, id="heartbeat to no group"),
            pytest.param({"member_epoch": -1}, E.GROUP_ID_NOT_FOUND, id="leave no group"),
        ],
    )
    def test_a_first_heartbeat(self, changes: dict[str, Any], error: ErrorCode) -> None:
        world = World()
        response = world.send(**{**JOIN, **changes})
        assert ErrorCode(response.error_code) is error
        assert response.error_message
        assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
        assert not world.has_group()
        assert world.log.records() == []

    def test_a_group_that_is_full(self) -> None:
        world = World(group_consumer_max_size=1)
        a = world.member("a", "t")
        a.join()
        assert world.member("b", "t").join() is E.GROUP_MAX_SIZE_REACHED
        assert a.join() is E.NONE

    def test_a_member_the_group_does_not_have(self) -> None:
        world = World()
        world.member("a", "t").join()
        assert world.send(member_id="b", member_epoch=2).error_code == E.UNKNOWN_MEMBER_ID
        assert world.send(member_id="b", member_epoch=-1).error_code == E.UNKNOWN_MEMBER_ID

    def test_an_epoch_from_the_future_or_the_past(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        assert a.send(member_epoch=a.epoch + 1).error_code == E.FENCED_MEMBER_EPOCH
        world.settle(a)
        b = world.member("b", "t")
        b.join()
        world.settle(a, b)
        assert a.send(member_epoch=1).error_code == E.FENCED_MEMBER_EPOCH

    def test_a_log_that_refuses_leaves_everything_as_it_was(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        before = world.snapshot()
        world.log.fail_with(KafkaError(E.KAFKA_STORAGE_ERROR, "no space"))
        assert world.member("b", "t").join() is E.NOT_COORDINATOR
        assert a.leave() is E.NOT_COORDINATOR
        assert world.snapshot() == before
        world.log.fail_with(None)
        assert world.member("b", "t").join() is E.NONE


class TestJoining:
    def test_the_first_member_gets_everything_at_once(self) -> None:
        world = World()
        a = world.member("a", "t")
        assert a.join() is E.NONE
        assert (a.response.member_id, a.epoch, a.response.heartbeat_interval_ms) == ("a", 2, 5_000)
        assert a.owned == world.partitions("t")
        assert world.record_types() == [
            "ConsumerGroupMemberMetadata",
            "ConsumerGroupMetadata",
            "ConsumerGroupTargetAssignmentMember",
            "ConsumerGroupTargetAssignmentMetadata",
            "ConsumerGroupCurrentMemberAssignment",
        ]

    def test_version_0_may_leave_the_member_id_to_the_coordinator(self) -> None:
        world = World()
        response = world.send(version=0, **{**JOIN, "member_id": ""})
        assert response.error_code == E.NONE
        assert response.member_id
        assert world.group().has_member(response.member_id)

    def test_nothing_new_means_no_assignment_and_no_record(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        written = len(world.log.records())
        response = a.send()
        assert (response.error_code, response.member_epoch, response.assignment) == (E.NONE, a.epoch, None)
        assert len(world.log.records()) == written

    def test_a_full_request_is_always_answered_with_the_assignment(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        response = a.send(**a.full_request())
        assert response.assignment is not None

    def test_a_second_member_waits_until_the_first_has_let_go(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        world.timer.advance(1_000)
        b.join()
        assert b.owned == set()
        assert world.group().members["b"].state is MemberState.UNRELEASED_PARTITIONS
        a.take(a.send())
        assert world.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
        assert world.state() == "Reconciling"
        b.beat()
        assert b.owned == set()
        a.beat()
        b.beat()
        assert world.state() == "Stable"
        assert a.owned | b.owned == world.partitions("t")
        assert not a.owned & b.owned

    def test_assignments_are_not_made_more_often_than_the_interval(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        world.timer.advance(999)
        b.join()
        assert (world.state(), b.epoch) == ("Assigning", a.epoch)
        world.timer.advance(1)
        b.beat()
        assert (world.state(), b.epoch) == ("Reconciling", a.epoch + 1)

    def test_a_group_setting_changes_the_interval(self) -> None:
        world = World(settings={"consumer.assignment.interval.ms": 0})
        world.member("a", "t").join()
        world.member("b", "t").join()
        assert world.state() == "Reconciling"

    def test_a_member_without_topics(self) -> None:
        world = World()
        a = world.member("a")
        assert a.join() is E.NONE
        assert a.epoch == 1
        assert (a.owned, world.state()) == (set(), "Stable")

    def test_a_lost_response_is_made_up_for(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        b.join()
        world.timer.advance(1_100)
        before = b.epoch
        b.send(topic_partitions=[])
        assert world.group().members["b"].member_epoch > before
        assert b.send(topic_partitions=[]).error_code == E.NONE

    def test_a_lost_response_is_not_made_up_for_if_the_member_owns_what_it_should_not(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        b.join()
        world.timer.advance(1_100)
        b.send(topic_partitions=[])
        owned = [RequestTopicPartitions(topic_id=world.topics.ids["t"], partitions=[0])]
        assert b.send(topic_partitions=owned).error_code == E.FENCED_MEMBER_EPOCH
        assert b.send().error_code == E.FENCED_MEMBER_EPOCH

    def test_a_member_that_is_fenced_joins_again_under_its_id(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        assert a.take(a.send(member_epoch=77)) is E.FENCED_MEMBER_EPOCH
        assert a.join() is E.NONE
        assert a.owned == world.partitions("t")
        assert len(world.group().members) == 1

    def test_the_assignor_most_members_ask_for_wins(self) -> None:
        world = World({"t": 3, "u": 3})
        members = [
            world.member("a", "t", "u", server_assignor="range"),
            world.member("b", "t", "u", server_assignor="range"),
            world.member("c", "t", "u", server_assignor="uniform"),
        ]
        for member in members:
            member.join()
        world.settle(*members)
        assert world.describe().assignor_name == "range"
        assert [sorted(member.owned) for member in members] == [[("t", n), ("u", n)] for n in range(3)]

    def test_a_new_address_of_the_client_is_written_but_changes_no_epoch(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        epoch = world.group().group_epoch
        a.send(client_id="renamed")
        assert world.group().members["a"].client_id == "renamed"
        assert world.group().group_epoch == epoch


class TestLeaving:
    def test_what_a_member_had_goes_to_the_others(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        b.join()
        world.settle(a, b)
        assert b.leave() is E.NONE
        assert world.state() == "Assigning"
        world.settle(a)
        assert a.owned == world.partitions("t")

    def test_the_last_one_leaves_an_empty_group_that_may_be_joined_again(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        epoch = a.epoch
        response = a.send(member_epoch=-1)
        assert (response.error_code, response.member_id, response.member_epoch) == (E.NONE, "a", -1)
        assert (world.state(), world.group().target_assignment) == ("Empty", {})
        world.restart()
        world.timer.advance(1_000)
        assert a.join() is E.NONE
        assert a.epoch > epoch
        assert a.owned == world.partitions("t")

    def test_a_session_that_times_out(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        b.join()
        world.settle(a, b)
        world.timer.advance(44_000)
        a.beat()
        world.timer.advance(1_000)
        assert set(world.group().members) == {"a"}
        assert b.beat() is E.UNKNOWN_MEMBER_ID

    def test_a_group_setting_changes_session_and_heartbeats(self) -> None:
        settings = {"consumer.session.timeout.ms": 60_000, "consumer.heartbeat.interval.ms": 7_000}
        world = World(settings=settings)
        a = world.member("a", "t")
        a.join()
        assert a.response.heartbeat_interval_ms == 7_000
        world.timer.advance(59_999)
        assert world.group().has_member("a")
        world.timer.advance(1)
        assert not world.group().has_member("a")

    def test_a_member_that_does_not_revoke_in_time(self) -> None:
        world = World()
        a, b = world.member("a", "t", rebalance_timeout_ms=10_000), world.member("b", "t")
        a.join()
        world.timer.advance(1_000)
        b.join()
        a.take(a.send())
        world.timer.advance(9_000)
        a.send()
        b.send()
        world.timer.advance(1_000)
        assert set(world.group().members) == {"b"}
        world.settle(b)
        assert b.owned == world.partitions("t")

    def test_a_member_that_revokes_in_time_stays(self) -> None:
        world = World()
        a, b = world.member("a", "t", rebalance_timeout_ms=10_000), world.member("b", "t")
        a.join()
        world.timer.advance(1_000)
        b.join()
        a.take(a.send())
        a.beat()
        world.timer.advance(30_000)
        assert set(world.group().members) == {"a", "b"}

    def test_removal_is_tried_again_when_the_log_refuses(self) -> None:
        world = World()
        world.member("a", "t").join()
        world.log.fail_with(KafkaError(E.KAFKA_STORAGE_ERROR))
        world.timer.advance(45_000)
        assert world.group().has_member("a")
        world.log.fail_with(None)
        world.timer.advance(500)
        assert world.state() == "Empty"

    def test_no_clock_is_left_behind(self) -> None:
        world = World()
        idle = world.timer.pending()
        members = [world.member(name, "t") for name in "abc"]
        for member in members:
            member.join()
        world.settle(*members)
        for member in members:
            member.leave()
        assert world.timer.pending() == idle


class TestDescribe:
    def test_a_group_with_members(self) -> None:
        world = World()
        a, b = world.member("a", "t", instance_id="i", rack_id="r"), world.member("b", "t")
        a.join()
        world.timer.advance(1_000)
        b.join()
        a.take(a.send())
        found = world.describe()
        assert (found.error_code, found.group_state, found.assignor_name) == (E.NONE, "Reconciling", "uniform")
        assert (found.group_epoch, found.assignment_epoch) == (3, 3)
        first, second = found.members
        assert (first.member_id, first.instance_id, first.rack_id, first.member_type) == ("a", "i", "r", 1)
        assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
        assert first.subscribed_topic_names == ["t"]
        # What it has yet to revoke is still its own.
        assert [(topic.topic_name, topic.partitions) for topic in first.assignment.topic_partitions] == [
            ("t", [0, 1, 2, 3])
        ]
        assert [topic.partitions for topic in first.target_assignment.topic_partitions] == [[0, 1]]
        assert second.assignment.topic_partitions == []
        assert [topic.partitions for topic in second.target_assignment.topic_partitions] == [[2, 3]]

    def test_groups_that_are_not_there(self) -> None:
        world = World()
        empty, unknown = world.coordinator.consumer_group_describe(["", "nope"])
        assert empty.error_code == E.INVALID_GROUP_ID
        assert (unknown.error_code, unknown.group_id) == (E.GROUP_ID_NOT_FOUND, "nope")
        assert unknown.error_message

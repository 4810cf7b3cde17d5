"""The clocks of a classic group, members that leave, and what happens when the log refuses."""

import pytest

from millstream.broker.groups.config import GroupConfig
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.heartbeat import HeartbeatRequest
from support.group_coordinator import Groups, error_of, subscription


def test_heartbeats_keep_a_member_and_their_absence_removes_it() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    for _ in range(5):
        groups.timer.advance(9_999)
        assert groups.heartbeat(a) == ErrorCode.NONE
    groups.timer.advance(10_000)
    assert groups.state() == "Empty"
    assert groups.heartbeat(a) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offset_commits_keep_a_member_alive() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    for _ in range(3):
        groups.timer.advance(9_999)
        assert groups.commit({("t", 0): 1}, member=a.member_id, generation=1) == ErrorCode.NONE
    assert groups.state() == "Stable"


def test_a_heartbeat_says_what_has_become_of_the_group() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    assert groups.heartbeat(a.response) == ErrorCode.NONE  # between join and sync
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    groups.sync(leader, {})
    assert groups.heartbeat(follower, generation=7) == ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat(follower, group="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(follower, instance="x") == ErrorCode.UNKNOWN_MEMBER_ID
    groups.join(client="c")
    assert groups.heartbeat(follower) == ErrorCode.REBALANCE_IN_PROGRESS
    assert error_of(lambda: groups.coordinator.heartbeat(HeartbeatRequest())) == ErrorCode.INVALID_GROUP_ID


def test_a_dead_member_starts_a_rebalance_for_the_others() -> None:
    groups = Groups()
    a, b = groups.stable("a", "b")
    groups.timer.advance(9_000)
    groups.heartbeat(a)
    groups.timer.advance(1_000)
    assert groups.heartbeat(a) == ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.join(member=a.member_id)
    assert again.response.generation_id == 2
    assert [member.member_id for member in again.response.members] == [a.member_id]
    assert groups.heartbeat(b) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_rejoin_within_the_rebalance_timeout_is_removed() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b", session_ms=1_800_000)
    rejoined = groups.join(member=follower.member_id, protocols={"range": subscription("u")})
    groups.timer.advance(59_999)
    assert rejoined.waits
    groups.timer.advance(1)
    assert rejoined.response.generation_id == 2
    assert rejoined.response.leader == follower.member_id
    assert groups.heartbeat(leader) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_waiting_member_needs_no_heartbeat() -> None:
    groups = Groups()
    a, b = groups.stable("a", "b", session_ms=10_000)
    waiting = groups.join(member=a.member_id, protocols={"range": subscription("u")}, session_ms=10_000)
    for _ in range(5):
        groups.timer.advance(9_000)
        groups.heartbeat(b)
    assert waiting.waits
    assert groups.join(member=b.member_id).response.error_code == ErrorCode.NONE
    assert waiting.response.error_code == ErrorCode.NONE


def test_a_new_member_that_waits_is_given_up_after_five_minutes() -> None:
    groups = Groups()
    (a,) = groups.stable("a", session_ms=1_800_000)
    newcomer = groups.join(client="b", rebalance_ms=1_000_000, session_ms=10_000)
    for _ in range(30):
        groups.timer.advance(9_999)
        groups.heartbeat(a)
    assert newcomer.waits
    groups.timer.advance(1_000)
    assert newcomer.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer.response.member_id == ""


def test_who_joined_but_does_not_sync_is_removed_with_the_rebalance_timeout() -> None:
    groups = Groups()
    a = groups.join(client="a", session_ms=1_800_000)
    b = groups.join(client="b", session_ms=1_800_000)
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    groups.sync(leader, {leader.member_id: b"x"})
    assert groups.state() == "Stable"
    groups.timer.advance(60_000)
    assert groups.state() == "PreparingRebalance"
    assert groups.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_syncs_does_not_hold_the_others_for_ever() -> None:
    groups = Groups()
    a = groups.join(client="a", session_ms=1_800_000)
    b = groups.join(client="b", session_ms=1_800_000)
    groups.timer.advance(6_000)
    follower = b.response if a.response.members else a.response
    waiting = groups.sync(follower)
    groups.timer.advance(60_000)
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.join(member=follower.member_id).response.leader == follower.member_id


def test_the_last_member_to_leave_leaves_an_empty_group_of_the_next_generation() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    response = groups.leave((a.member_id, None))
    assert response.error_code == ErrorCode.NONE
    assert [member.error_code for member in response.members] == [ErrorCode.NONE]
    assert groups.state() == "Empty"
    (again,) = groups.stable("a")
    assert again.generation_id == 3


def test_several_members_leave_at_once_and_each_has_its_own_answer() -> None:
    groups = Groups()
    a, b, c = groups.stable("a", "b", "c", instances=True)
    response = groups.leave((a.member_id, None), ("", "b"), ("ghost", None), ("", "nobody"), (c.member_id, "a"))
    assert [member.error_code for member in response.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.heartbeat(c, instance="c") == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat(b, instance="b") == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_another_members_instance_id_is_fenced() -> None:
    groups = Groups()
    a, _ = groups.stable("a", "b", instances=True)
    taken = "b" if a.member_id.startswith("a-") else "a"
    assert groups.leave((a.member_id, taken)).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_leaving_a_group_that_is_not_there() -> None:
    groups = Groups()
    response = groups.leave(("x", None), group="nobody")
    assert response.error_code == ErrorCode.NONE
    assert response.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.leave(("x", None), group="").error_code == ErrorCode.INVALID_GROUP_ID


def test_a_member_that_leaves_lets_the_rebalance_complete() -> None:
    groups = Groups()
    a, b = groups.stable("a", "b")
    waiting = groups.join(member=a.member_id, protocols={"range": subscription("u")})
    groups.leave((b.member_id, None))
    assert waiting.response.generation_id == 2


def test_a_waiting_sync_of_a_member_that_is_removed_is_answered() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    follower = b.response if a.response.members else a.response
    waiting = groups.sync(follower)
    groups.leave((follower.member_id, None))
    assert waiting.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_refused_assignment_is_told_to_all_and_the_group_rebalances() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    waiting = groups.sync(follower)
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space"))
    led = groups.sync(leader, {})
    assert led.response.error_code == ErrorCode.NOT_COORDINATOR
    assert waiting.response.error_code == ErrorCode.NOT_COORDINATOR
    assert groups.state() == "PreparingRebalance"
    groups.log.fail_with(None)
    rejoined = [groups.join(member=each.member_id) for each in (leader, follower)]
    assert {join.response.generation_id for join in rejoined} == {2}


def test_a_group_whose_first_record_is_refused_is_not_created() -> None:
    groups = Groups()
    groups.log.fail_with(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert groups.join().response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.coordinator.group_ids() == []


def test_a_refused_empty_generation_leaves_the_group_empty() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    groups.leave((a.member_id, None))
    assert groups.state() == "Empty"


def test_close_answers_everybody_and_stops_all_clocks() -> None:
    groups = Groups()
    groups.stable("b", group="h")
    joining = groups.join(client="a")
    groups.coordinator.close()
    assert joining.response.error_code == ErrorCode.NOT_COORDINATOR
    assert groups.timer.pending() == 0
    assert groups.join(client="c").response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.describe().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (described,) = groups.coordinator.consumer_group_describe(["g"])
    assert described.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_no_initial_delay_if_it_is_set_to_nothing() -> None:
    groups = Groups(GroupConfig(group_initial_rebalance_delay_ms=0))
    a = groups.join(client="a")
    groups.timer.advance(0)
    assert a.response.generation_id == 1


@pytest.mark.parametrize("members", [1, 5, 40])
def test_groups_of_any_size_come_to_rest(members: int) -> None:
    groups = Groups()
    responses = groups.stable(*(f"c{number}" for number in range(members)))
    assert groups.state() == "Stable"
    assert len({response.member_id for response in responses}) == members
    described = groups.describe()
    assert sorted(member.member_assignment for member in described.members) == sorted(
        f"c{number}".encode() for number in range(members)
    )

"""JoinGroup and SyncGroup on classic groups: who gets in, when the barriers open, and what each member is told."""

import pytest

from millstream.broker.context import RequestContext
from millstream.broker.groups.config import GroupConfig
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from support.group_coordinator import Groups, subscription


def ask_for_member_id(groups: Groups, *, session_ms: int = 10_000) -> JoinGroupResponse:
    """The first JoinGroup of a new member, and nothing after it."""
    answers: list[JoinGroupResponse] = []
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("t"))],
    )
    groups.coordinator.join_group(request, RequestContext(api_version=4, client_id="me"), answers.append)
    return answers[0]


def test_a_new_member_is_first_given_its_member_id() -> None:
    groups = Groups()
    pending = ask_for_member_id(groups)
    assert pending.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert pending.member_id.startswith("me-")
    assert groups.state() == "Empty"


def test_before_version_4_a_new_member_joins_at_once() -> None:
    groups = Groups()
    join = groups.join(client="old", version=3)
    assert join.waits
    assert groups.state() == "PreparingRebalance"


def test_a_pending_member_that_does_not_come_back_is_forgotten_after_its_session() -> None:
    groups = Groups()
    pending = ask_for_member_id(groups)
    groups.timer.advance(10_000)
    late = groups.join(member=pending.member_id)
    assert late.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_pending_members() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    ask_for_member_id(groups, session_ms=6_000)
    rejoin = groups.join(member=a.member_id)
    assert rejoin.waits
    groups.timer.advance(6_000)
    assert rejoin.response.generation_id == 2


def test_the_first_generation_comes_after_the_initial_delay() -> None:
    groups = Groups()
    a = groups.join(client="a")
    groups.timer.advance(2_999)
    assert a.waits
    groups.timer.advance(1)
    assert a.response.error_code == ErrorCode.NONE
    assert a.response.generation_id == 1
    assert a.response.leader == a.response.member_id
    assert a.response.protocol_type == "consumer"
    assert a.response.protocol_name == "range"
    assert [member.member_id for member in a.response.members] == [a.response.member_id]


def test_newcomers_prolong_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    groups = Groups()
    joins = [groups.join(client="0", rebalance_ms=7_000)]
    for number in range(1, 4):
        groups.timer.advance(2_000)
        joins.append(groups.join(client=str(number), rebalance_ms=7_000))
    assert all(join.waits for join in joins)
    groups.timer.advance(1_000)
    assert {join.response.generation_id for join in joins} == {1}


def test_only_the_leader_is_told_the_subscriptions() -> None:
    groups = Groups()
    a = groups.join(client="a", protocols={"range": subscription("t")})
    b = groups.join(client="b", protocols={"range": subscription("u")})
    groups.timer.advance(6_000)
    leader, follower = (a, b) if a.response.leader == a.response.member_id else (b, a)
    assert {member.metadata for member in leader.response.members} == {subscription("t"), subscription("u")}
    assert follower.response.members == []
    assert follower.response.leader == leader.response.member_id


def test_the_protocol_most_members_like_best_is_chosen_from_those_all_support() -> None:
    groups = Groups()
    joins = [
        groups.join(client="a", protocols={"sticky": b"", "range": b"", "mine": b""}),
        groups.join(client="b", protocols={"range": b"", "sticky": b""}),
        groups.join(client="c", protocols={"yours": b"", "range": b"", "sticky": b""}),
    ]
    groups.timer.advance(6_000)
    assert {join.response.protocol_name for join in joins} == {"range"}


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", {"range": b""}), ("consumer", {"other": b""}), ("consumer", {}), ("", {"range": b""})],
)
def test_a_member_without_a_common_protocol_is_refused(protocol_type: str, protocols: dict[str, bytes]) -> None:
    groups = Groups()
    groups.stable("a")
    refused = groups.join(client="b", protocol_type=protocol_type, protocols=protocols)
    assert refused.response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.state() == "Stable"


def test_even_the_first_member_needs_a_protocol() -> None:
    groups = Groups()
    assert groups.join(protocols={}).response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.join(protocol_type="").response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("group", "session_ms", "error"),
    [
        ("", 10_000, ErrorCode.INVALID_GROUP_ID),
        ("g", 5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        ("g", 1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_requests_that_cannot_be(group: str, session_ms: int, error: ErrorCode) -> None:
    groups = Groups()
    assert groups.join(group, session_ms=session_ms).response.error_code == error
    assert groups.coordinator.group_ids() == []


def test_a_member_id_that_the_coordinator_does_not_know_is_refused() -> None:
    groups = Groups()
    assert groups.join(member="ghost").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    groups.stable("a")
    assert groups.join(member="ghost").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_group_max_size_turns_newcomers_away() -> None:
    groups = Groups(GroupConfig(group_max_size=2))
    a, b = groups.stable("a", "b")
    assert groups.join(client="c").response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.state() == "Stable"
    rejoined = groups.join(member=a.member_id), groups.join(member=b.member_id)
    assert {join.response.generation_id for join in rejoined} == {2}


def test_in_a_rebalance_of_an_oversized_group_the_last_to_rejoin_is_turned_away() -> None:
    groups = Groups()
    a, b, c = groups.stable("a", "b", "c")
    groups.config = GroupConfig(group_max_size=2)
    groups = groups.restarted()
    assert groups.state() == "PreparingRebalance"
    assert groups.join(member=a.member_id).waits
    assert groups.join(member=b.member_id).waits
    late = groups.join(member=c.member_id)
    assert late.response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_assignment_reaches_everybody_and_the_group_is_stable() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    waiting = groups.sync(follower)
    assert waiting.waits
    assert groups.state() == "CompletingRebalance"
    led = groups.sync(leader, {leader.member_id: b"one", follower.member_id: b"two"})
    assert led.response.assignment == b"one"
    assert waiting.response.assignment == b"two"
    assert waiting.response.protocol_type == "consumer"
    assert waiting.response.protocol_name == "range"
    assert groups.state() == "Stable"


def test_a_member_the_leader_forgot_gets_an_empty_assignment() -> None:
    groups = Groups()
    a = groups.join(client="a")
    groups.timer.advance(3_000)
    assert groups.sync(a.response, {}).response.assignment == b""


def test_a_member_may_sync_after_the_group_is_stable() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    groups.sync(leader, {follower.member_id: b"two"})
    assert groups.sync(follower).response.assignment == b"two"


def test_sync_checks_member_generation_and_protocol() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    assert groups.sync(a, generation=5).response.error_code == ErrorCode.ILLEGAL_GENERATION
    assert groups.sync(a, protocol_type="connect").response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.sync(a, protocol_name="sticky").response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.sync(a, instance="nobody").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync(a, group="other").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync(a, group="").response.error_code == ErrorCode.INVALID_GROUP_ID
    a.member_id = "ghost"
    assert groups.sync(a).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_during_a_rebalance_is_told_to_rejoin() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.join(client="b")
    assert groups.sync(a).response.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_newcomer_ends_the_waiting_of_those_who_sync() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    follower = b.response if a.response.members else a.response
    waiting = groups.sync(follower)
    groups.join(client="c")
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.state() == "PreparingRebalance"


def test_a_follower_that_lost_its_response_gets_the_same_generation_again() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    again = groups.join(member=follower.member_id)
    assert again.response == follower
    leader_again = groups.join(member=leader.member_id)
    assert len(leader_again.response.members) == 2
    groups.sync(leader, {})
    assert groups.join(member=follower.member_id).response == follower
    assert groups.state() == "Stable"


def test_a_changed_subscription_or_the_leader_starts_a_rebalance() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b")
    assert groups.join(member=follower.member_id, protocols={"range": subscription("u")}).waits
    assert groups.state() == "PreparingRebalance"
    back = groups.join(member=leader.member_id)
    assert back.response.generation_id == 2
    assert groups.join(member=leader.member_id, protocols={"range": subscription("u", "t")}).waits


def test_a_join_that_is_repeated_while_it_waits_is_answered_once() -> None:
    groups = Groups()
    a, b = groups.stable("a", "b")
    first = groups.join(member=a.member_id)
    second = groups.join(member=a.member_id)
    assert first.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert second.waits
    groups.join(member=b.member_id)
    assert second.response.generation_id == 2


def test_a_sync_that_is_repeated_while_it_waits_is_answered_once() -> None:
    groups = Groups()
    a, b = groups.join(client="a"), groups.join(client="b")
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    first = groups.sync(follower)
    second = groups.sync(follower)
    assert first.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    groups.sync(leader, {follower.member_id: b"x"})
    assert second.response.assignment == b"x"


def test_a_protocol_that_is_named_twice_counts_once() -> None:
    groups = Groups()
    answers: list[JoinGroupResponse] = []
    twice = [JoinGroupRequestProtocol(name="range", metadata=b"a"), JoinGroupRequestProtocol(name="range")]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=twice,
    )
    groups.coordinator.join_group(request, RequestContext(api_version=3), answers.append)
    other = groups.join(client="b", version=3)
    groups.timer.advance(6_000)
    assert answers[0].protocol_name == other.response.protocol_name == "range"


def test_a_pending_member_cannot_turn_into_a_static_one() -> None:
    groups = Groups()
    pending = ask_for_member_id(groups)
    odd = groups.join(member=pending.member_id, instance="i")
    assert odd.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.join(member=pending.member_id).waits

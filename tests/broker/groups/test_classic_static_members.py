"""Static members (group.instance.id, KIP-345): a restart is no rebalance; of two with one id the older is fenced."""

import pytest

from millstream.wire.errors import ErrorCode, KafkaError
from support.group_coordinator import Groups, subscription


def test_a_restarted_follower_takes_its_old_place_without_a_rebalance() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b", instances=True)
    name = follower.member_id[0]
    back = groups.join(client=name, instance=name)
    assert back.response.error_code == ErrorCode.NONE
    assert back.response.generation_id == 1
    assert back.response.member_id not in (follower.member_id, "")
    assert back.response.leader == leader.member_id
    assert groups.sync(back.response, instance=name).response.assignment == name.encode()
    assert groups.state() == "Stable"


def test_the_process_it_replaces_is_fenced() -> None:
    groups = Groups()
    _, follower = groups.stable("a", "b", instances=True)
    name = follower.member_id[0]
    groups.join(client=name, instance=name)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(follower, instance=name) == fenced
    assert groups.sync(follower, instance=name).response.error_code == fenced
    assert groups.join(member=follower.member_id, instance=name).response.error_code == fenced
    assert groups.leave((follower.member_id, name)).members[0].error_code == fenced
    offsets = {("t", 0): 1}
    assert groups.commit(offsets, member=follower.member_id, generation=1, instance=name) == fenced
    assert groups.commit_in_transaction(offsets, member=follower.member_id, generation=1, instance=name) == fenced


def test_a_restarted_leader_is_told_to_skip_the_assignment() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b", instances=True)
    name = leader.member_id[0]
    back = groups.join(client=name, instance=name, version=9).response
    assert back.skip_assignment
    assert back.leader == back.member_id
    assert {member.member_id for member in back.members} == {back.member_id, follower.member_id}
    assert groups.heartbeat(follower, instance=follower.member_id[0]) == ErrorCode.NONE


def test_a_leader_of_an_older_version_is_told_of_its_former_self() -> None:
    groups = Groups()
    leader, _ = groups.stable("a", "b", instances=True, version=8)
    name = leader.member_id[0]
    back = groups.join(client=name, instance=name, version=8).response
    assert back.leader == leader.member_id
    assert back.members == []
    assert not back.skip_assignment


def test_a_replacement_that_changes_the_chosen_protocol_rebalances() -> None:
    groups = Groups()
    a = groups.join(client="a", instance="a", protocols={"range": b"", "sticky": b""})
    b = groups.join(client="b", instance="b", protocols={"range": b"", "sticky": b""})
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    groups.sync(follower)
    groups.sync(leader, {})
    name = follower.member_id[0]
    back = groups.join(client=name, instance=name, protocols={"sticky": b""})
    assert back.waits
    assert groups.state() == "PreparingRebalance"


def test_a_replacement_between_join_and_sync_rebalances() -> None:
    groups = Groups()
    a = groups.join(client="a", instance="a")
    b = groups.join(client="b", instance="b")
    groups.timer.advance(6_000)
    follower = b.response if a.response.members else a.response
    name = follower.member_id[0]
    waiting = groups.sync(follower)
    groups.join(client=name, instance=name)
    assert waiting.response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert groups.state() == "PreparingRebalance"


def test_a_join_that_waits_is_fenced_by_its_replacement() -> None:
    groups = Groups()
    first = groups.join(client="a", instance="a")
    second = groups.join(client="a", instance="a")
    assert first.response.error_code == ErrorCode.FENCED_INSTANCE_ID
    groups.timer.advance(3_000)
    assert second.response.error_code == ErrorCode.NONE
    assert len(second.response.members) == 1


def test_a_static_member_is_missed_only_after_its_session() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b", instances=True, session_ms=1_800_000)
    rejoined = groups.join(
        member=leader.member_id, instance=leader.member_id[0], protocols={"range": subscription("u")}
    )
    groups.timer.advance(60_000)
    assert rejoined.response.generation_id == 2
    assert len(rejoined.response.members) == 2
    assert follower.member_id in {member.member_id for member in rejoined.response.members}


def test_when_no_static_member_rejoins_the_group_waits_on() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b", instances=True, session_ms=1_800_000)
    newcomer = groups.join(client="c", session_ms=10_000, rebalance_ms=5_000)
    assert groups.leave((newcomer_id(groups, {leader.member_id, follower.member_id}), None)).error_code == 0
    assert newcomer.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    groups.timer.advance(120_000)
    assert groups.state() == "PreparingRebalance"
    back = [groups.join(member=each.member_id, instance=each.member_id[0]) for each in (leader, follower)]
    assert {join.response.generation_id for join in back} == {2}


def test_a_replacement_inherits_the_duty_to_sync_and_its_clock() -> None:
    groups = Groups()
    a = groups.join(client="a", instance="a", session_ms=1_800_000)
    b = groups.join(client="b", instance="b", session_ms=1_800_000)
    groups.timer.advance(6_000)
    leader, follower = (a.response, b.response) if a.response.members else (b.response, a.response)
    groups.sync(leader, {})
    name = follower.member_id[0]
    back = groups.join(client=name, instance=name, session_ms=1_800_000).response
    assert groups.sync(back, instance=name).response.error_code == ErrorCode.NONE
    groups.timer.advance(120_000)
    assert groups.state() == "Stable"


def newcomer_id(groups: Groups, known: set[str]) -> str:
    (found,) = {member.member_id for member in groups.describe().members} - known
    return found


def test_a_replacement_the_log_refuses_changes_nothing() -> None:
    groups = Groups()
    leader, _ = groups.stable("a", "b", instances=True)
    name = leader.member_id[0]
    groups.log.fail_with(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    refused = groups.join(client=name, instance=name, protocols={"range": subscription("u")})
    assert refused.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused.response.member_id == ""
    groups.log.fail_with(None)
    assert groups.heartbeat(leader, instance=name) == ErrorCode.NONE
    described = {member.member_id: member for member in groups.describe().members}
    assert described[leader.member_id].member_metadata == subscription("t")


@pytest.mark.parametrize("compacted", [False, True])
def test_a_replacement_survives_a_restart(compacted: bool) -> None:
    groups = Groups()
    _, follower = groups.stable("a", "b", instances=True)
    name = follower.member_id[0]
    back = groups.join(client=name, instance=name).response
    groups = groups.restarted(compacted=compacted)
    assert groups.heartbeat(back, instance=name) == ErrorCode.NONE
    assert groups.heartbeat(follower, instance=name) == ErrorCode.FENCED_INSTANCE_ID

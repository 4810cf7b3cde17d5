"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the classic protocol in all its main paths."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, coordinated, eventually, unique
from support.groups import META, Member, join_request, subscription
from support.raw import RawClient

CHANGED = subscription("some-topic", "another-topic")
A1, B1, B2, C2 = (subscription("some-topic", user_data=text) for text in (b"1a", b"1b", b"2b", b"2c"))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def group() -> str:
    return unique("group")


def state(raw: RawClient, group: str) -> str:
    name: str = raw.call("describe_groups", 5, groups=[group]).groups[0].group_state
    return name


def two_members(cluster: Cluster, stack: ExitStack, group: str, **options: Any) -> tuple[Member, Member]:
    """A stable group of two; the first is the leader."""
    first = stack.enter_context(Member(cluster, group, **options)).join_alone()
    second = stack.enter_context(Member(cluster, group, **options))
    second.get_member_id()
    second.send_join()
    eventually(lambda: first.heartbeat() == E.rebalance_in_progress)
    first.join()
    second.receive_join()
    second.send_sync()
    assert first.sync({first.member_id: b"one", second.member_id: b"two"}).assignment == b"one"
    assert second.raw.receive().assignment == b"two"
    return first, second


class TestJoin:
    @pytest.mark.parametrize("version", range(10))
    def test_alone_in_every_version(self, raw: RawClient, group: str, version: int) -> None:
        request = join_request(group)
        if version < 5:
            del request["group_instance_id"]
        if version < 1:
            del request["rebalance_timeout"]
        answer = coordinated(raw, "join_group", version, **request)
        if version >= 4:
            assert (answer.error_code, answer.generation_id) == (E.member_id_required, -1)
            assert answer.members == []
            request["member_id"] = answer.member_id
            answer = raw.call("join_group", version, **request)
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (E.none, 1, "range")
        assert answer.leader == answer.member_id
        assert answer.member_id.startswith("behaviour-")
        assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, META)]
        if version >= 7:
            assert answer.protocol_type == "consumer"
        if version >= 9:
            assert answer.skip_assignment is False

    def test_the_member_id_of_a_static_member_has_its_instance(self, raw: RawClient, group: str) -> None:
        answer = coordinated(raw, "join_group", 9, **join_request(group, instance="me"))
        assert (answer.error_code, answer.generation_id) == (E.none, 1)
        assert answer.member_id.startswith("me-")

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            pytest.param({"group_id": ""}, E.invalid_group_id, id="empty group id"),
            pytest.param({"member_id": "ghost"}, E.unknown_member_id, id="unknown member id"),
            pytest.param({"session_timeout": 100}, E.invalid_session_timeout, id="session time-out too short"),
            pytest.param({"session_timeout": 1_800_001}, E.invalid_session_timeout, id="session time-out too long"),
            pytest.param({"protocols": []}, E.inconsistent_group_protocol, id="no protocols"),
            pytest.param({"protocol_type": ""}, E.inconsistent_group_protocol, id="no protocol type"),
        ],
    )
    def test_refused(self, raw: RawClient, group: str, changes: dict[str, Any], error: E) -> None:
        answer = coordinated(raw, "join_group", 9, **{**join_request(group), **changes})
        assert (answer.error_code, answer.generation_id, answer.members) == (error, -1, [])

    def test_another_protocol_type_or_no_common_protocol(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            wrong_type = raw.call("join_group", 9, **join_request(group, protocol_type="connect"))
            assert wrong_type.error_code == E.inconsistent_group_protocol
            nothing_shared = raw.call("join_group", 9, **join_request(group, protocols=(("other", META),)))
            assert nothing_shared.error_code == E.inconsistent_group_protocol
            assert member.heartbeat() == E.none

    def test_the_leader_hears_of_all_and_the_protocol_all_like_best_wins(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first = stack.enter_context(Member(cluster, group, protocols=(("a", A1), ("b", B1)))).join_alone()
        second = stack.enter_context(Member(cluster, group, protocols=(("b", B2), ("c", C2))))
        second.get_member_id()
        second.send_join()
        eventually(lambda: first.heartbeat() == E.rebalance_in_progress)
        answer = first.join()
        assert (answer.generation_id, answer.protocol_name, answer.leader) == (2, "b", first.member_id)
        found = {member.member_id: member.metadata for member in answer.members}
        assert found == {first.member_id: B1, second.member_id: B2}
        follower = second.receive_join()
        assert (follower.error_code, follower.generation_id, follower.members) == (E.none, 2, [])
        assert (follower.leader, follower.protocol_name) == (first.member_id, "b")

    def test_a_member_that_does_not_rejoin_in_time_is_dropped(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first = stack.enter_context(Member(cluster, group, rebalance_timeout=500)).join_alone()
        second = stack.enter_context(Member(cluster, group, rebalance_timeout=500))
        second.join()
        assert (second.generation, second.members) == (2, [second.member_id])
        assert first.heartbeat() == E.unknown_member_id

    def test_joining_again_unchanged_as_a_follower_returns_the_current_generation(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first, second = two_members(cluster, stack, group)
        again = second.join()
        assert (again.generation_id, again.leader) == (2, first.member_id)
        assert first.heartbeat() == E.none

    def test_a_leader_that_joins_again_starts_a_rebalance(self, cluster: Cluster, stack: ExitStack, group: str) -> None:
        first, second = two_members(cluster, stack, group)
        first.send_join()
        eventually(lambda: second.heartbeat() == E.rebalance_in_progress)
        second.send_join()
        assert first.receive_join().generation_id == 3
        assert second.receive_join().generation_id == 3

    def test_a_follower_with_other_metadata_starts_a_rebalance(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first, second = two_members(cluster, stack, group)
        second.send_join(protocols=(("range", CHANGED),))
        eventually(lambda: first.heartbeat() == E.rebalance_in_progress)
        answer = first.join()
        assert {member.metadata for member in answer.members} == {META, CHANGED}
        assert second.receive_join().generation_id == 3


class TestSync:
    @pytest.mark.parametrize("version", range(6))
    def test_in_every_version(self, cluster: Cluster, group: str, version: int) -> None:
        with Member(cluster, group) as member:
            member.join()
            request = member.identity()
            if version < 3:
                del request["group_instance_id"]
            if version >= 5:
                request |= {"protocol_type": "consumer", "protocol_name": "range"}
            request["assignments"] = [{"member_id": member.member_id, "assignment": b"mine"}]
            answer = member.raw.call("sync_group", version, **request)
            assert (answer.error_code, answer.assignment) == (E.none, b"mine")
            if version >= 5:
                assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
            del request["assignments"]
            assert member.raw.call("sync_group", version, **request).assignment == b"mine"

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"member_id": "ghost"}, E.unknown_member_id),
            ({"generation_id": 9}, E.illegal_generation),
            ({"group_id": "group-that-is-not-there"}, E.unknown_member_id),
            ({"group_id": ""}, E.invalid_group_id),
            ({"protocol_name": None}, E.inconsistent_group_protocol),
            ({"protocol_type": None}, E.inconsistent_group_protocol),
            ({"protocol_name": "other"}, E.inconsistent_group_protocol),
            ({"protocol_type": "other"}, E.inconsistent_group_protocol),
        ],
    )
    def test_refused(self, cluster: Cluster, group: str, changes: dict[str, Any], error: E) -> None:
        with Member(cluster, group) as member:
            member.join()
            request = {**member.identity(), "protocol_type": "consumer", "protocol_name": "range"}
            answer = member.raw.call("sync_group", 5, **{**request, **changes})
            assert (answer.error_code, answer.assignment) == (error, b"")

    def test_followers_wait_for_the_leader(self, cluster: Cluster, stack: ExitStack, group: str) -> None:
        first, second = two_members(cluster, stack, group)
        first.send_join()
        eventually(lambda: second.heartbeat() == E.rebalance_in_progress)
        second.join()
        first.receive_join()
        second.send_sync()
        assert second.raw.has_nothing_to_read(0.1)
        assert first.sync({second.member_id: b"all of it"}).assignment == b""
        assert second.raw.receive().assignment == b"all of it"

    def test_during_a_rebalance(self, cluster: Cluster, stack: ExitStack, group: str) -> None:
        first, second = two_members(cluster, stack, group)
        first.send_join()
        eventually(lambda: second.heartbeat() == E.rebalance_in_progress)
        assert second.sync().error_code == E.rebalance_in_progress

    def test_a_waiting_follower_hears_of_the_next_rebalance(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first, second = two_members(cluster, stack, group)
        first.send_join()
        eventually(lambda: second.heartbeat() == E.rebalance_in_progress)
        second.join()
        first.receive_join()
        second.send_sync()
        first.send_join(protocols=(("range", CHANGED),))
        assert second.raw.receive().error_code == E.rebalance_in_progress


class TestHeartbeat:
    @pytest.mark.parametrize("version", range(5))
    def test_in_every_version(self, cluster: Cluster, group: str, version: int) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            request = member.identity()
            if version < 3:
                del request["group_instance_id"]
            assert member.raw.call("heartbeat", version, **request).error_code == E.none

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"member_id": "ghost"}, E.unknown_member_id),
            ({"member_id": ""}, E.unknown_member_id),
            ({"generation_id": 0}, E.illegal_generation),
            ({"generation_id": 2}, E.illegal_generation),
            ({"group_id": "group-that-is-not-there"}, E.unknown_member_id),
            ({"group_id": ""}, E.invalid_group_id),
        ],
    )
    def test_refused(self, cluster: Cluster, group: str, changes: dict[str, Any], error: E) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            assert member.heartbeat(**changes) == error

    def test_before_the_sync(self, cluster: Cluster, group: str) -> None:
        with Member(cluster, group) as member:
            member.join()
            assert member.heartbeat() == E.none

    def test_a_silent_member_is_dropped_after_its_session_time_out(
        self, cluster: Cluster, raw: RawClient, group: str
    ) -> None:
        with Member(cluster, group, session_timeout=600) as member:
            member.join_alone()
            eventually(lambda: state(raw, group) == "Empty")
            assert member.heartbeat() == E.unknown_member_id

    def test_a_heartbeat_keeps_the_member(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group, session_timeout=1500) as member:
            member.join_alone()
            for _ in range(20):
                assert member.heartbeat() == E.none
                assert raw.has_nothing_to_read(0.1)
            assert state(raw, group) == "Stable"


class TestLeave:
    @pytest.mark.parametrize("version", range(6))
    def test_in_every_version(self, cluster: Cluster, raw: RawClient, group: str, version: int) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            if version < 3:
                answer = raw.call("leave_group", version, group_id=group, member_id=member.member_id)
            else:
                answer = raw.call("leave_group", version, group_id=group, members=[{"member_id": member.member_id}])
                assert [(m.member_id, m.error_code) for m in answer.members] == [(member.member_id, E.none)]
            assert answer.error_code == E.none
            assert member.heartbeat() == E.unknown_member_id
            assert state(raw, group) == "Empty"

    def test_the_others_rebalance(self, cluster: Cluster, stack: ExitStack, group: str) -> None:
        first, second = two_members(cluster, stack, group)
        assert first.leave().members[0].error_code == E.none
        eventually(lambda: second.heartbeat() == E.rebalance_in_progress)
        answer = second.join()
        assert (answer.generation_id, answer.leader) == (3, second.member_id)

    def test_unknown_members_and_groups(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            answer = raw.call("leave_group", 5, group_id=group, members=[{"member_id": "ghost"}])
            assert (answer.error_code, answer.members[0].error_code) == (E.none, E.unknown_member_id)
            old = raw.call("leave_group", 2, group_id=group, member_id="ghost")
            assert old.error_code == E.unknown_member_id
        nowhere = raw.call("leave_group", 5, group_id=unique("nowhere"), members=[{"member_id": "ghost"}])
        assert (nowhere.error_code, nowhere.members[0].error_code) == (E.none, E.unknown_member_id)
        assert raw.call("leave_group", 5, group_id="", members=[]).error_code == E.invalid_group_id


class TestStaticMembers:
    def test_a_restart_keeps_the_assignment_without_a_rebalance(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first = stack.enter_context(Member(cluster, group, instance="one")).join_alone()
        restarted = stack.enter_context(Member(cluster, group, instance="one"))
        answer = restarted.join()
        assert (answer.generation_id, answer.protocol_name) == (first.generation, "range")
        assert answer.member_id != first.member_id
        assert restarted.sync().assignment == b"everything"
        assert restarted.heartbeat() == E.none

    def test_the_replaced_member_is_fenced(self, cluster: Cluster, stack: ExitStack, group: str) -> None:
        first = stack.enter_context(Member(cluster, group, instance="one")).join_alone()
        stack.enter_context(Member(cluster, group, instance="one")).join()
        assert first.heartbeat() == E.fenced_instance_id
        assert first.sync().error_code == E.fenced_instance_id
        assert first.leave().members[0].error_code == E.fenced_instance_id
        first.send_join()
        assert first.raw.receive().error_code == E.fenced_instance_id

    def test_an_instance_id_that_the_group_does_not_know(self, cluster: Cluster, group: str) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            assert member.heartbeat(group_instance_id="stranger") == E.unknown_member_id

    def test_leaving_by_instance_id_alone(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group, instance="one") as member:
            member.join_alone()
            identity = {"member_id": "", "group_instance_id": "one"}
            answer = raw.call("leave_group", 5, group_id=group, members=[identity])
            assert (answer.error_code, answer.members[0].error_code) == (E.none, E.none)
            assert state(raw, group) == "Empty"

    def test_a_restarted_member_that_prefers_another_protocol_starts_a_rebalance(
        self, cluster: Cluster, stack: ExitStack, group: str
    ) -> None:
        first = stack.enter_context(Member(cluster, group, instance="one")).join_alone()
        options: dict[str, Any] = {"instance": "one", "protocols": (("other", META), ("range", META))}
        restarted = stack.enter_context(Member(cluster, group, **options))
        answer = restarted.join()
        assert (answer.generation_id, answer.protocol_name) == (first.generation + 1, "other")

"""FindCoordinator, ListGroups, DescribeGroups and DeleteGroups."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, create_topic, eventually, find_coordinator, unique
from support.groups import META, Member
from support.raw import RawClient


@pytest.fixture
def group() -> str:
    return unique("group")


class TestFindCoordinator:
    @pytest.mark.parametrize(("version", "key_type"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)])
    def test_one_key(self, cluster: Cluster, raw: RawClient, group: str, version: int, key_type: int) -> None:
        kind = {"key_type": key_type} if version >= 1 else {}

        def found() -> Any:
            answer = raw.call("find_coordinator", version, key=group, **kind)
            return answer if answer.error_code != E.coordinator_not_available else None

        answer = eventually(found)
        assert answer.error_code == E.none
        assert f"{answer.host}:{answer.port}" == cluster.bootstrap_servers
        assert answer.node_id == 1

    @pytest.mark.parametrize("version", range(4, 7))
    def test_several_keys(self, cluster: Cluster, raw: RawClient, version: int) -> None:
        keys = [unique("group"), unique("group")]
        find_coordinator(raw, 0, keys[0])
        answers = raw.call("find_coordinator", version, key_type=0, coordinator_keys=keys).coordinators
        assert [(a.key, a.error_code, a.node_id) for a in answers] == [(key, E.none, 1) for key in keys]
        assert {f"{a.host}:{a.port}" for a in answers} == {cluster.bootstrap_servers}

    @pytest.mark.parametrize("key_type", [3, 7, -1])
    def test_unknown_key_type(self, raw: RawClient, key_type: int) -> None:
        (answer,) = raw.call("find_coordinator", 6, key_type=key_type, coordinator_keys=["x"]).coordinators
        assert (answer.error_code, answer.node_id) == (E.invalid_request, -1)
        assert raw.call("find_coordinator", 3, key_type=key_type, key="x").error_code == E.invalid_request

    def test_no_keys(self, raw: RawClient) -> None:
        assert raw.call("find_coordinator", 6, key_type=0, coordinator_keys=[]).coordinators == []


class TestListGroups:
    def listed(self, raw: RawClient, group: str, **filters: Any) -> Any:
        response = raw.call("list_groups", 5, **filters)
        assert response.error_code == E.none
        found = [g for g in response.groups if g.group_id == group]
        return found[0] if found else None

    @pytest.mark.parametrize("version", range(6))
    def test_in_every_version(self, cluster: Cluster, raw: RawClient, group: str, version: int) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            response = raw.call("list_groups", version)
            (found,) = [g for g in response.groups if g.group_id == group]
            assert (response.error_code, found.protocol_type) == (E.none, "consumer")
            if version >= 4:
                assert found.group_state == "Stable"
            if version >= 5:
                assert found.group_type == "classic"

    def test_filters(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            assert self.listed(raw, group, states_filter=["Stable"])
            assert self.listed(raw, group, states_filter=["stable", "Empty"])
            assert not self.listed(raw, group, states_filter=["Empty"])
            assert self.listed(raw, group, types_filter=["classic"])
            assert self.listed(raw, group, types_filter=["Classic"])
            assert not self.listed(raw, group, types_filter=["consumer"])
            assert raw.call("list_groups", 5, states_filter=["Nonsense"]).groups == []
            assert raw.call("list_groups", 5, types_filter=["nonsense"]).error_code == E.none
            member.leave()
            assert self.listed(raw, group, states_filter=["Empty"])

    def test_a_group_that_only_holds_offsets(self, raw: RawClient, group: str) -> None:
        topic = create_topic(raw)
        find_coordinator(raw, 0, group)
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        raw.call("offset_commit", 9, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=where)
        found = self.listed(raw, group)
        assert (found.protocol_type, found.group_state, found.group_type) == ("", "Empty", "classic")


class TestDescribeGroups:
    @pytest.mark.parametrize("version", range(7))
    def test_a_stable_group_in_every_version(self, cluster: Cluster, raw: RawClient, group: str, version: int) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            (found,) = raw.call("describe_groups", version, groups=[group]).groups
            assert (found.error_code, found.group_id, found.group_state) == (E.none, group, "Stable")
            assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
            (one,) = found.members
            assert (one.member_id, one.client_id) == (member.member_id, f"client-of-{group}")
            assert (one.client_host, one.member_metadata, one.member_assignment) == ("/127.0.0.1", META, b"everything")
            if version >= 3:
                assert found.authorized_operations == -2147483648
            if version >= 4:
                assert one.group_instance_id is None

    @pytest.mark.parametrize(("version", "error"), [(0, E.none), (5, E.none), (6, E.group_id_not_found)])
    def test_a_group_that_is_not_there(self, raw: RawClient, group: str, version: int, error: E) -> None:
        find_coordinator(raw, 0, group)
        (found,) = raw.call("describe_groups", version, groups=[group]).groups
        assert (found.error_code, found.group_state, found.members) == (error, "Dead", [])
        assert (found.protocol_type, found.protocol_data) == ("", "")
        if version >= 6:
            assert found.error_message

    def test_the_states_of_a_group(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        def state() -> str:
            name: str = raw.call("describe_groups", 5, groups=[group]).groups[0].group_state
            return name

        with Member(cluster, group) as first, Member(cluster, group) as second:
            first.join()
            assert state() == "CompletingRebalance"
            first.sync({first.member_id: b"all"})
            assert state() == "Stable"
            second.get_member_id()
            second.send_join()
            assert eventually(lambda: state() == "PreparingRebalance")
            first.leave()
            second.receive_join()
            assert state() == "CompletingRebalance"
            second.leave()
            assert state() == "Empty"

    def test_while_a_group_rebalances_metadata_and_assignments_are_hidden(
        self, cluster: Cluster, raw: RawClient, group: str
    ) -> None:
        with Member(cluster, group) as member:
            member.join()
            (found,) = raw.call("describe_groups", 5, groups=[group]).groups
            assert (found.protocol_data, found.members[0].member_assignment) == ("", b"")
            assert found.members[0].member_metadata == b""

    def test_authorized_operations(self, cluster: Cluster, raw: RawClient, group: str) -> None:
        with Member(cluster, group) as member:
            member.join_alone()
            (found,) = raw.call("describe_groups", 5, groups=[group], include_authorized_operations=True).groups
            assert found.authorized_operations == 3400


class TestDeleteGroups:
    @pytest.mark.parametrize("version", range(3))
    def test_empty_busy_and_unknown(self, cluster: Cluster, raw: RawClient, group: str, version: int) -> None:
        def delete(name: str) -> E:
            (result,) = raw.call("delete_groups", version, groups_names=[name]).results
            assert result.group_id == name
            error: E = result.error_code
            return error

        with Member(cluster, group) as member:
            assert delete(group) == E.group_id_not_found
            member.join_alone()
            assert delete(group) == E.non_empty_group
            member.leave()
            assert delete(group) == E.none
            assert delete(group) == E.group_id_not_found
            assert group not in [g.group_id for g in raw.call("list_groups", 5).groups]

    def test_the_offsets_go_with_the_group(self, raw: RawClient, group: str) -> None:
        topic = create_topic(raw)
        find_coordinator(raw, 0, group)
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        where = [{"name": topic.name, "partitions": [part]}]
        raw.call("offset_commit", 9, group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=where)
        assert raw.call("delete_groups", 2, groups_names=[group]).results[0].error_code == E.none
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        (answer,) = raw.call("offset_fetch", 9, groups=[{"group_id": group, "topics": wanted}]).groups
        assert answer.topics[0].partitions[0].committed_offset == -1

    def test_an_empty_group_id(self, raw: RawClient) -> None:
        raw.call("delete_groups", 2, groups_names=[""])
        (result,) = raw.call("delete_groups", 2, groups_names=[""]).results
        assert result.error_code == E.group_id_not_found

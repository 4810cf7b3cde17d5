"""The facade: listing, describing, deleting, changing the kind of a group, metrics, and what a restart brings back."""

import pytest

from millstream.broker.context import RequestContext
from millstream.broker.groups.config import GroupConfig
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from support.group_coordinator import Groups, error_of, subscription

T0 = ("t", 0)


def heartbeat(groups: Groups, group: str = "g", member: str = "m", epoch: int = 0) -> ConsumerGroupHeartbeatResponse:
    """A member of the consumer protocol joins (epoch 0), lives, or leaves (epoch -1)."""
    return groups.coordinator.consumer_group_heartbeat(
        ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=["t"] if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        ),
        RequestContext(api_version=1, client_id="c"),
    )


# --- list and describe -----------------------------------------------------------------------------------------------


def test_groups_are_listed_with_kind_and_state() -> None:
    groups = Groups()
    groups.stable("a", group="classic")
    groups.commit({T0: 1}, group="simple")
    heartbeat(groups, "new")
    listed = {
        group.group_id: (group.group_type, group.protocol_type, group.group_state)
        for group in groups.coordinator.list_groups()
    }
    assert listed == {
        "classic": ("classic", "consumer", "Stable"),
        "simple": ("classic", "", "Empty"),
        "new": ("consumer", "consumer", "Stable"),
    }


def test_filters_of_the_list() -> None:
    groups = Groups()
    groups.stable("a", group="classic")
    groups.commit({T0: 1}, group="simple")
    heartbeat(groups, "new")

    def names(states: list[str], types: list[str]) -> set[str]:
        return {group.group_id for group in groups.coordinator.list_groups(states, types)}

    assert names(["stable"], []) == {"classic", "new"}
    assert names([" EMPTY "], []) == {"simple"}
    assert names(["Dead"], []) == set()
    assert names([], ["Classic"]) == {"classic", "simple"}
    assert names(["Stable"], ["consumer"]) == {"new"}
    assert names([], ["share"]) == set()


def test_a_stable_group_is_described_with_subscriptions_and_assignments() -> None:
    groups = Groups()
    (a,) = groups.stable("a", instances=True)
    described = groups.describe()
    assert described.error_code == ErrorCode.NONE
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.group_instance_id, member.client_id) == (a.member_id, "a", "a")
    assert member.client_host == "/127.0.0.1"
    assert member.member_metadata == subscription("t")
    assert member.member_assignment == b"a"


def test_in_a_rebalance_there_is_no_protocol_to_describe() -> None:
    groups = Groups()
    groups.stable("a")
    groups.join(client="b")
    described = groups.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_metadata for member in described.members} == {b""}


def test_a_group_that_is_not_there_is_dead() -> None:
    groups = Groups()
    heartbeat(groups, "new")
    for name in ("nobody", "new"):
        (old,) = groups.coordinator.describe_groups([name], 5)
        assert (old.group_state, old.error_code) == ("Dead", ErrorCode.NONE)
        (recent,) = groups.coordinator.describe_groups([name], 6)
        assert (recent.group_state, recent.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
        assert name in (recent.error_message or "")


# --- delete ----------------------------------------------------------------------------------------------------------


def test_deleting_a_group_deletes_its_offsets_and_what_is_pending() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.commit({T0: 1}, member=a.member_id, generation=1)
    assert error_of(lambda: groups.coordinator.delete_group("g")) == ErrorCode.NON_EMPTY_GROUP
    groups.leave((a.member_id, None))
    groups.commit_in_transaction({("u", 0): 5})
    groups.coordinator.delete_group("g")
    groups.end_transaction(committed=True)
    assert groups.coordinator.group_ids() == []
    assert groups.offsets() == {}
    again = groups.restarted(compacted=True)
    assert again.coordinator.group_ids() == []
    assert again.offsets() == {}
    assert error_of(lambda: groups.coordinator.delete_group("g")) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deletion_the_log_refuses_changes_nothing() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert error_of(lambda: groups.coordinator.delete_group("g")) == ErrorCode.NOT_COORDINATOR
    assert groups.offsets() == {T0: 1}


def test_a_group_with_very_many_offsets_is_deleted_in_several_batches() -> None:
    groups = Groups()
    groups.topics.create("wide", 30_000)
    for start in range(0, 30_000, 5_000):
        groups.commit({("wide", partition): 1 for partition in range(start, start + 5_000)})
    batches = sum(map(len, groups.log.entries))
    groups.coordinator.delete_group("g")
    assert sum(map(len, groups.log.entries)) - batches > 1
    assert groups.offsets() == {}
    assert groups.restarted().coordinator.group_ids() == []


# --- the two kinds ---------------------------------------------------------------------------------------------------


def test_an_empty_consumer_group_becomes_classic_and_keeps_its_offsets() -> None:
    groups = Groups()
    joined = heartbeat(groups)
    assert groups.commit({T0: 4}, member="m", generation=joined.member_epoch) == ErrorCode.NONE
    heartbeat(groups, epoch=-1)
    groups.stable("a")
    assert groups.offsets() == {T0: 4}
    for again in (groups, groups.restarted(), groups.restarted(compacted=True)):
        (listed,) = again.coordinator.list_groups()
        assert (listed.group_type, listed.group_state) == ("classic", "Stable")
        assert again.offsets() == {T0: 4}


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.commit({T0: 4}, member=a.member_id, generation=1)
    groups.leave((a.member_id, None))
    assert heartbeat(groups).error_code == ErrorCode.NONE
    for again in (groups, groups.restarted(), groups.restarted(compacted=True)):
        (listed,) = again.coordinator.list_groups()
        assert listed.group_type == "consumer"
        assert again.offsets() == {T0: 4}


def test_a_classic_member_of_no_consumer_group_is_unknown() -> None:
    groups = Groups()
    heartbeat(groups)
    heartbeat(groups, epoch=-1)
    assert groups.join(member="ghost").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (listed,) = groups.coordinator.list_groups()
    assert listed.group_type == "consumer"


def test_a_classic_member_joins_a_consumer_group_that_has_members() -> None:
    groups = Groups()
    groups.join(client="other", group="elsewhere")
    heartbeat(groups)
    joined = groups.join(client="old").response
    assert joined.error_code == ErrorCode.NONE
    assert joined.leader == ""
    assert groups.sync(joined).response.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
    assert groups.leave((joined.member_id, None)).members[0].error_code == ErrorCode.NONE
    assert groups.heartbeat(joined) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_in_a_consumer_group_are_committed_with_the_member_epoch() -> None:
    groups = Groups()
    epoch = heartbeat(groups).member_epoch
    assert groups.commit({T0: 4}, member="m", generation=epoch) == ErrorCode.NONE
    assert groups.commit({T0: 5}, member="m", generation=epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert groups.commit({T0: 5}, member="m", generation=epoch, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert groups.commit_in_transaction({T0: 5}, member="m", generation=epoch + 1) == ErrorCode.ILLEGAL_GENERATION
    assert groups.offset() == 4


# --- restart ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compacted", [False, True])
def test_a_stable_group_carries_on_after_a_crash(compacted: bool) -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b")
    groups.commit({T0: 9}, member=leader.member_id, generation=1)
    before = groups.describe()
    groups = groups.restarted(compacted=compacted)
    assert groups.describe() == before
    assert groups.heartbeat(leader) == ErrorCode.NONE
    assert groups.heartbeat(follower) == ErrorCode.NONE
    assert groups.commit({T0: 10}, member=leader.member_id, generation=1) == ErrorCode.NONE
    assert groups.offset() == 10


def test_members_that_do_not_return_after_a_crash_time_out() -> None:
    groups = Groups()
    leader, follower = groups.stable("a", "b")
    groups = groups.restarted()
    groups.timer.advance(9_999)
    groups.heartbeat(leader)
    groups.timer.advance(1)
    assert groups.heartbeat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat(follower) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_half_finished_rebalance_falls_back_to_the_last_generation_on_record() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.join(member=a.member_id)
    groups = groups.restarted()
    assert groups.state() == "Stable"
    assert groups.heartbeat(a) == ErrorCode.NONE


def test_open_transactions_stay_open_over_a_crash() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.commit_in_transaction({T0: 2})
    groups = groups.restarted()
    assert groups.fetched(require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    groups.end_transaction(committed=True)
    groups = groups.restarted()
    assert groups.fetched(require_stable=True) == (2, ErrorCode.NONE)


def test_an_empty_group_remembers_since_when() -> None:
    groups = Groups(GroupConfig(offsets_retention_minutes=60))
    (a,) = groups.stable("a")
    groups.commit({T0: 1}, member=a.member_id, generation=1)
    groups.timer.advance(5_000)
    groups.leave((a.member_id, None))
    groups.timer.advance(3_000_000)
    groups = groups.restarted()
    groups.timer.advance(600_000)
    assert groups.coordinator.group_ids() == []


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_count_groups_members_and_offsets() -> None:
    groups = Groups()
    groups.stable("a", "b", group="classic")
    groups.commit({T0: 1, ("u", 0): 2}, group="simple")
    heartbeat(groups, "new")
    metrics = groups.coordinator.metrics()
    assert metrics.groups == {("classic", "Stable"): 1, ("classic", "Empty"): 1, ("consumer", "Stable"): 1}
    assert metrics.members == 3
    assert metrics.offsets == 2
    assert groups.coordinator.committed_offsets("simple")["t"][0].offset == 1

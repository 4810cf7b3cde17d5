"""Committed offsets: who may commit, transactions, fetching, deletion and expiry."""

import pytest

from millstream.broker.groups.config import GroupConfig
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from support.group_coordinator import Groups, error_of, subscription

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
CHECK_MS = 600_000
T0 = ("t", 0)


def delete(groups: Groups, *places: tuple[str, int], group: str = "g") -> list[ErrorCode]:
    response = groups.coordinator.offset_delete(
        OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
                for topic, partition in places
            ],
        )
    )
    if response.error_code != ErrorCode.NONE:
        return [ErrorCode(response.error_code)]
    return [ErrorCode(topic.partitions[0].error_code) for topic in response.topics]


# --- commit and fetch ------------------------------------------------------------------------------------------------


def test_a_commit_from_outside_of_any_group_makes_a_simple_group() -> None:
    groups = Groups()
    assert groups.commit({T0: 42, ("u", 1): 7}, metadata="note") == ErrorCode.NONE
    assert groups.offsets() == {T0: 42, ("u", 1): 7}
    (listed,) = groups.coordinator.list_groups()
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "",
        "Empty",
        "classic",
    )


def test_offset_epoch_and_metadata_come_back() -> None:
    groups = Groups()
    groups.commit({T0: 42}, metadata="note")
    request = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
    )
    known, unknown = groups.coordinator.offset_fetch(request, require_stable=True).topics[0].partitions
    assert (known.committed_offset, known.committed_leader_epoch, known.metadata) == (42, 7, "note")
    assert (unknown.committed_offset, unknown.committed_leader_epoch, unknown.metadata) == (-1, -1, "")
    assert unknown.error_code == ErrorCode.NONE


def test_the_empty_group_id_may_have_offsets() -> None:
    groups = Groups()
    assert groups.commit({T0: 1}, group="") == ErrorCode.NONE
    assert groups.offset(group="") == 1


def test_members_commit_with_their_generation() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    assert groups.commit({T0: 1}, member=a.member_id, generation=1) == ErrorCode.NONE
    assert groups.commit({T0: 2}, member=a.member_id, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert groups.commit({T0: 2}, member="ghost", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit({T0: 2}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.offset() == 1


def test_between_join_and_sync_no_offsets_are_taken() -> None:
    groups = Groups()
    a = groups.join(client="a")
    groups.timer.advance(3_000)
    member = a.response.member_id
    assert groups.commit({T0: 1}, member=member, generation=1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.commit_in_transaction({T0: 1}, member=member, generation=1) == ErrorCode.NONE


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_is_not_there(version: int, error: ErrorCode) -> None:
    groups = Groups()
    assert groups.commit({T0: 1}, member="m", generation=3, version=version) == error
    assert groups.commit_in_transaction({T0: 1}, member="m", generation=3) == ErrorCode.ILLEGAL_GENERATION
    assert groups.coordinator.group_ids() == []


def test_metadata_has_a_maximum_size() -> None:
    groups = Groups(GroupConfig(offset_metadata_max_bytes=4))
    assert groups.commit({T0: 1}, metadata="1234") == ErrorCode.NONE
    assert groups.commit({T0: 2}, metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.commit_in_transaction({T0: 3}, metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.commit({T0: 4}, metadata=None) == ErrorCode.NONE
    assert groups.offset() == 4


def test_a_commit_the_log_refuses_changes_nothing() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert groups.commit({T0: 2}) == ErrorCode.NOT_COORDINATOR
    assert groups.commit({T0: 2}, group="new") == ErrorCode.NOT_COORDINATOR
    assert groups.offset() == 1
    assert groups.coordinator.group_ids() == ["g"]


def test_offsets_of_a_topic_that_was_created_again_do_not_count_for_the_new_one() -> None:
    groups = Groups()
    groups.commit({T0: 5})
    request = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", topic_id=b"another topic id", partition_indexes=[0])]
    )
    answer = groups.coordinator.offset_fetch(request, require_stable=False).topics[0].partitions[0]
    assert answer.committed_offset == -1


def test_before_load_and_after_close_nothing_is_served() -> None:
    groups = Groups()
    groups.coordinator.close()
    assert groups.commit({T0: 1}) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(groups.offset) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert delete(groups, T0) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


# --- transactions ----------------------------------------------------------------------------------------------------


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.commit_in_transaction({T0: 2})
    assert groups.fetched() == (1, ErrorCode.NONE)
    assert groups.fetched(require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    groups.end_transaction(committed=True)
    assert groups.fetched(require_stable=True) == (2, ErrorCode.NONE)


def test_offsets_of_an_aborted_transaction_vanish() -> None:
    groups = Groups()
    groups.commit_in_transaction({T0: 2})
    groups.end_transaction(committed=False)
    assert groups.fetched(require_stable=True) == (-1, ErrorCode.NONE)


def test_a_regular_commit_behind_a_transactional_one_wins() -> None:
    groups = Groups()
    groups.commit_in_transaction({T0: 2})
    groups.commit({T0: 3})
    groups.end_transaction(committed=True)
    assert groups.offset() == 3


def test_producers_do_not_end_each_others_transactions() -> None:
    groups = Groups()
    groups.commit_in_transaction({T0: 2}, producer=1)
    groups.commit_in_transaction({T0: 3, ("u", 0): 1}, producer=2)
    groups.end_transaction(committed=True, producer=1)
    assert groups.fetched(require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert groups.offset() == 2
    groups.end_transaction(committed=True, producer=2)
    assert groups.offsets() == {T0: 3, ("u", 0): 1}


def test_a_marker_ends_the_transaction_in_its_own_partition_only() -> None:
    groups = Groups()
    one, two = next(
        (f"g{i}", f"g{j}")
        for i in range(9)
        for j in range(9)
        if groups.coordinator.partition_for(f"g{i}") != groups.coordinator.partition_for(f"g{j}")
    )
    groups.commit_in_transaction({T0: 1}, group=one)
    groups.commit_in_transaction({T0: 2}, group=two)
    groups.end_transaction(committed=True, group=one)
    assert groups.offset(group=one) == 1
    assert groups.offset(group=two) == -1


def test_transactional_members_are_checked_if_they_say_who_they_are() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    assert groups.commit_in_transaction({T0: 1}, member=a.member_id, generation=1) == ErrorCode.NONE
    assert groups.commit_in_transaction({T0: 1}, member=a.member_id, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert groups.commit_in_transaction({T0: 1}, member="ghost", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit_in_transaction({T0: 1}) == ErrorCode.NONE
    assert groups.commit_in_transaction({T0: 1}, group="") == ErrorCode.INVALID_GROUP_ID


# --- deletion --------------------------------------------------------------------------------------------------------


def test_offsets_are_deleted_unless_their_topic_is_subscribed_to() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.commit({T0: 1, ("u", 0): 2}, member=a.member_id, generation=1)
    assert delete(groups, T0, ("u", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert groups.offsets() == {T0: 1}
    groups.leave((a.member_id, None))
    assert delete(groups, T0) == [ErrorCode.NONE]
    assert groups.offsets() == {}


def test_deleting_offsets_of_groups_that_are_not_there_or_not_consumers() -> None:
    groups = Groups()
    assert delete(groups, T0, group="nobody") == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert delete(groups, T0, group="") == [ErrorCode.INVALID_GROUP_ID]
    groups.join(group="connect", protocol_type="connect", protocols={"default": b""})
    groups.timer.advance(3_000)
    assert delete(groups, T0, group="connect") == [ErrorCode.NON_EMPTY_GROUP]


def test_deleting_an_offset_deletes_what_is_pending_for_it_too() -> None:
    groups = Groups()
    groups.commit_in_transaction({T0: 2, ("u", 0): 3})
    assert delete(groups, T0) == [ErrorCode.NONE]
    groups.end_transaction(committed=True)
    assert groups.offsets() == {("u", 0): 3}


def test_deleted_topics_take_their_offsets_with_them() -> None:
    groups = Groups()
    groups.commit({T0: 1, ("u", 0): 2})
    groups.commit({T0: 3}, group="other")
    groups.commit_in_transaction({("t", 1): 4}, group="other")
    groups.commit({("u", 1): 5}, group="no id", with_topic_id=False)
    groups.coordinator.on_topics_deleted({"t": groups.topics.ids["t"]})
    groups.end_transaction(committed=True, group="other")
    assert groups.offsets() == {("u", 0): 2}
    assert groups.offsets("other") == {}
    groups.coordinator.on_topics_deleted({"u": b"a younger topic u"})
    assert groups.offsets() == {("u", 0): 2}
    assert groups.offsets("no id") == {}
    assert groups.restarted().offsets() == {("u", 0): 2}


def test_deleted_topics_are_forgiven_when_the_log_refuses() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    groups.coordinator.on_topics_deleted({"t": groups.topics.ids["t"]})
    assert groups.offsets() == {T0: 1}


# --- expiry ----------------------------------------------------------------------------------------------------------


def test_offsets_of_a_simple_consumer_expire_a_week_after_their_commit() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.timer.advance(DAY_MS)
    groups.commit({("t", 1): 2})
    groups.timer.advance(WEEK_MS - DAY_MS - CHECK_MS)
    assert groups.offsets() == {T0: 1, ("t", 1): 2}
    groups.timer.advance(CHECK_MS)
    assert groups.offsets() == {("t", 1): 2}
    groups.timer.advance(DAY_MS)
    assert groups.coordinator.group_ids() == []
    assert groups.restarted().coordinator.group_ids() == []


def test_offsets_of_an_empty_group_expire_a_week_after_it_became_empty() -> None:
    groups = Groups()
    (a,) = groups.stable("a", session_ms=1_800_000)
    groups.commit({T0: 1}, member=a.member_id, generation=1)
    for _ in range(600):
        groups.timer.advance(1_500_000)
        groups.heartbeat(a)
    assert groups.offsets() == {T0: 1}
    groups.leave((a.member_id, None))
    groups.timer.advance(WEEK_MS - CHECK_MS)
    assert groups.offsets() == {T0: 1}
    groups.timer.advance(2 * CHECK_MS)
    assert groups.coordinator.group_ids() == []


def test_offsets_of_topics_that_members_no_longer_read_expire() -> None:
    groups = Groups()
    (a,) = groups.stable("a", session_ms=1_800_000)
    groups.commit({T0: 1, ("u", 0): 2}, member=a.member_id, generation=1)
    for _ in range(410):
        groups.timer.advance(1_500_000)
        groups.heartbeat(a)
    assert groups.offsets() == {T0: 1}
    assert groups.state() == "Stable"


def test_while_a_group_rebalances_nothing_expires() -> None:
    groups = Groups(GroupConfig(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000))
    (a,) = groups.stable("a", session_ms=1_800_000)
    groups.commit({("u", 0): 2}, member=a.member_id, generation=1)
    groups.join(client="b", rebalance_ms=1_000_000, session_ms=1_800_000)
    groups.timer.advance(59_000)
    groups.heartbeat(a)
    assert groups.state() == "PreparingRebalance"
    assert groups.offsets() == {("u", 0): 2}


def test_a_commit_may_name_its_own_retention_time() -> None:
    groups = Groups()
    groups.commit({T0: 1}, retention_ms=3_600_000, version=4)
    groups.timer.advance(3_600_000 - 1)
    assert groups.offsets() == {T0: 1}
    groups.timer.advance(CHECK_MS)
    assert groups.offsets() == {}


def test_pending_transactions_keep_offsets_and_group() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.commit_in_transaction({T0: 2})
    groups.commit_in_transaction({T0: 2}, group="only pending")
    groups.timer.advance(WEEK_MS + CHECK_MS)
    assert groups.offsets() == {T0: 1}
    assert sorted(groups.coordinator.group_ids()) == ["g", "only pending"]
    groups.end_transaction(committed=True)
    assert groups.offsets() == {T0: 2}
    groups.timer.advance(CHECK_MS)
    assert groups.offsets() == {}


def test_an_empty_group_without_offsets_goes_with_the_next_check() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.leave((a.member_id, None))
    groups.timer.advance(CHECK_MS)
    assert groups.coordinator.group_ids() == []


def test_expiry_is_tried_again_when_the_log_refuses() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    groups.timer.advance(WEEK_MS + CHECK_MS)
    assert groups.offsets() == {T0: 1}
    groups.log.fail_with(None)
    groups.timer.advance(CHECK_MS)
    assert groups.coordinator.group_ids() == []


def test_a_group_that_is_subscribed_by_unreadable_subscriptions_keeps_its_offsets() -> None:
    groups = Groups()
    a = groups.join(client="a", protocols={"range": b"\x00"}, session_ms=1_800_000)
    groups.timer.advance(3_000)
    groups.sync(a.response, {})
    groups.commit({T0: 1}, member=a.response.member_id, generation=1)
    assert delete(groups, T0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert subscription("t") != b"\x00"

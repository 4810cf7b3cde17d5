"""The replay at start: only what counts is decoded, and the order of things is kept where it matters."""

from millstream.broker.coordinator_log import KeyValue, ReplayedRecords
from millstream.broker.groups.records import tombstone
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.group_records import GroupMetadataKey, OffsetCommitKey
from support.group_coordinator import Groups

T0 = ("t", 0)


def test_an_offset_that_was_committed_again_is_not_even_decoded() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    (entries,) = [partition for partition in groups.log.entries if partition]
    torn = entries[0]
    assert isinstance(torn, ReplayedRecords)
    entries[0] = torn._replace(records=(KeyValue(torn.records[0].key, b"\x00\x04 not an offset"),))
    groups.commit({T0: 2})
    assert groups.restarted().offset() == 2


def test_a_tombstone_ends_what_was_pending_before_it_and_not_what_comes_after() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.commit_in_transaction({T0: 2}, producer=1)
    partition = groups.coordinator.partition_for("g")
    groups.log.append(partition, [tombstone(OffsetCommitKey(group="g", topic="t", partition=0))])
    groups = groups.restarted()
    assert groups.fetched(require_stable=True) == (-1, ErrorCode.NONE)
    groups.commit_in_transaction({T0: 3}, producer=2)
    groups = groups.restarted()
    groups.end_transaction(committed=True, producer=1)
    assert groups.fetched() == (-1, ErrorCode.NONE)
    groups.end_transaction(committed=True, producer=2)
    assert groups.restarted().fetched() == (3, ErrorCode.NONE)


def test_a_group_deleted_without_its_offsets_is_a_simple_one() -> None:
    groups = Groups()
    (a,) = groups.stable("a")
    groups.commit({T0: 1}, member=a.member_id, generation=1)
    groups.log.append(groups.coordinator.partition_for("g"), [tombstone(GroupMetadataKey(group="g"))])
    groups = groups.restarted()
    (listed,) = groups.coordinator.list_groups()
    assert (listed.group_state, listed.protocol_type) == ("Empty", "")
    assert groups.offsets() == {T0: 1}
    groups.timer.advance(8 * 86_400_000)
    assert groups.coordinator.group_ids() == []


def test_records_of_unknown_types_are_passed_over() -> None:
    groups = Groups()
    groups.commit({T0: 1})
    groups.log.append(0, [KeyValue(b"\x00\x0b\x00\x01s", b"\x00\x00")])
    assert groups.restarted().offsets() == {T0: 1}


def test_a_tombstone_counts_even_if_the_offset_was_committed_again() -> None:
    groups = Groups()
    groups.commit_in_transaction({T0: 1})
    groups.coordinator.delete_group("g")
    groups.commit({T0: 2})
    groups.commit({T0: 3})
    groups = groups.restarted()
    assert groups.fetched(require_stable=True) == (3, ErrorCode.NONE)
    groups.end_transaction(committed=True)
    assert groups.offset() == 3

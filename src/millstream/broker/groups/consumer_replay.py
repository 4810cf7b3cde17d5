"""Applies the records of consumer groups to the table of groups: the one way their state changes, at start as while
running.

A tombstone of something that is not there is passed over: compaction keeps it longer than what it deletes. A record
of a group that is not in the table creates it; so does one that meets an empty classic group, which may only be the
holder of offsets that were replayed before.
"""

from __future__ import annotations

from millstream.broker.groups import consumer_records
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.consumer_subscriptions import ResolvedRegularExpression
from millstream.broker.groups.group import Group
from millstream.wire.message import Message
from millstream.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
"""The keys this module knows: `isinstance(key, ConsumerGroupKey)`."""


def apply_record(groups: dict[str, Group], key: Message, value: Message | None) -> None:
    if not isinstance(key, ConsumerGroupKey):
        raise TypeError(f"{type(key).__name__} is not the key of a consumer group's record")
    group = groups.get(key.group_id)
    if value is None:
        if isinstance(group, ConsumerGroup):
            _delete(groups, group, key)
        return
    if not isinstance(group, ConsumerGroup):
        if group is not None:
            group.cancel_timers()
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    _put(group, key, value)


def _put(group: ConsumerGroup, key: ConsumerGroupKey, value: Message) -> None:
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            group.apply_member(consumer_records.with_metadata(_member(group, key.member_id), value))
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.target_assignment[key.member_id] = consumer_records.read_target(value)
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
            group.apply_member(consumer_records.with_current_assignment(_member(group, key.member_id), value))
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
            group.apply_resolved(
                key.regular_expression,
                ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp),
            )
        case ConsumerGroupPartitionMetadataKey(), _:
            group.has_partition_metadata_record = True
        case _:
            raise TypeError(f"{type(value).__name__} is not a value for {type(key).__name__}")


def _delete(groups: dict[str, Group], group: ConsumerGroup, key: ConsumerGroupKey) -> None:
    match key:
        case ConsumerGroupMetadataKey():
            group.cancel_timers()
            del groups[key.group_id]
        case ConsumerGroupMemberMetadataKey():
            group.apply_member_removed(key.member_id)
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.assignment_epoch = -1
            group.assignment_timestamp_ms = 0
        case ConsumerGroupTargetAssignmentMemberKey():
            group.target_assignment.pop(key.member_id, None)
        case ConsumerGroupCurrentMemberAssignmentKey():
            group.apply_member_released(key.member_id)
        case ConsumerGroupRegularExpressionKey():
            group.apply_resolved(key.regular_expression, None)
        case ConsumerGroupPartitionMetadataKey():
            group.has_partition_metadata_record = False


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    return group.members.get(member_id) or ConsumerGroupMember(member_id)

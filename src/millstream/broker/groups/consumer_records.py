"""The records of a consumer group: which there are, and how members and assignments are written in them and read back.

    record                                   key       says
    ConsumerGroupMetadata                    group     group epoch, hash of the subscribed topics
    ConsumerGroupMemberMetadata              member    what the member asked for
    ConsumerGroupTargetAssignmentMetadata    group     epoch of the target assignment
    ConsumerGroupTargetAssignmentMember      member    the member's part of it
    ConsumerGroupCurrentMemberAssignment     member    epoch, state and partitions of the member
    ConsumerGroupRegularExpression           regex     the topics an expression stands for
    ConsumerGroupPartitionMetadata           group     only ever deleted: older brokers wrote it

A change is a key and its new value, None to delete it. The bytes are the business of `records`. A member is deleted in
the order current assignment, target assignment, metadata; Apache Kafka refuses to load any other order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups import records
from millstream.broker.groups.assignors import Assignment
from millstream.broker.groups.consumer_member import AssignmentWithEpochs, ConsumerGroupMember
from millstream.broker.groups.consumer_states import member_state
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
    TopicPartition,
    TopicPartitions,
)

Change = tuple[Message, Message | None]


def encoded(changes: Iterable[Change]) -> list[KeyValue]:
    return [records.tombstone(key) if value is None else records.encode_record(key, value) for key, value in changes]


# --- changes ---------------------------------------------------------------------------------------------------------


def group_metadata(group_id: str, epoch: int, metadata_hash: int) -> Change:
    return ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(
        epoch=epoch, metadata_hash=metadata_hash
    )


def member_metadata(group_id: str, member: ConsumerGroupMember) -> Change:
    return ConsumerGroupMemberMetadataKey(
        group_id=group_id, member_id=member.member_id
    ), ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor_name,
        classic_member_metadata=member.classic_member_metadata,
    )


def target_assignment_metadata(group_id: str, epoch: int, timestamp_ms: int) -> Change:
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )


def target_assignment(group_id: str, member_id: str, assignment: Assignment) -> Change:
    return ConsumerGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=member_id
    ), ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(assignment.items())
        ]
    )


def current_assignment(group_id: str, member: ConsumerGroupMember) -> Change:
    return ConsumerGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=member.member_id
    ), ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_written(member.assigned_partitions),
        partitions_pending_revocation=_written(member.partitions_pending_revocation),
    )


def regular_expression(group_id: str, expression: str, topics: Iterable[str], version: int, time_ms: int) -> Change:
    return ConsumerGroupRegularExpressionKey(
        group_id=group_id, regular_expression=expression
    ), ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=time_ms)


def without_regular_expression(group_id: str, expression: str) -> Change:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), None


def without_partition_metadata(group_id: str) -> Change:
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def without_member(group_id: str, member_id: str) -> list[Change]:
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def without_group(group_id: str, member_ids: Iterable[str], expressions: Iterable[str]) -> list[Change]:
    """Deletes everything, members first."""
    changes = [change for member_id in member_ids for change in without_member(group_id, member_id)]
    changes.append((ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    changes += [without_regular_expression(group_id, expression) for expression in expressions]
    changes.append(without_partition_metadata(group_id))
    changes.append((ConsumerGroupMetadataKey(group_id=group_id), None))
    return changes


# --- values read back ------------------------------------------------------------------------------------------------


def with_metadata(member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor_name=value.server_assignor,
        classic_member_metadata=value.classic_member_metadata,
    )


def with_current_assignment(
    member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerGroupMember:
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned_partitions=_read(value.assigned_partitions, value.member_epoch),
        partitions_pending_revocation=_read(value.partitions_pending_revocation, value.member_epoch),
    )


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions if topic.partitions}


def _written(assignment: AssignmentWithEpochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in sorted(assignment.items())
    ]


def _read(topics: Sequence[TopicPartitions], member_epoch: int) -> AssignmentWithEpochs:
    """Records of older brokers have no epochs; then the member's own counts, or 0 for a static member that is away."""
    assignment: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        if topic.partitions:
            assignment[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return assignment

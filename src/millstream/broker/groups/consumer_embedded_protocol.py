"""The embedded protocol of classic consumers: their subscriptions and assignments, as bytes within JoinGroup and
SyncGroup.

An int16 version, then the struct in that version; a version newer than ours is read as the newest we know, because each
only adds to the one before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from millstream.broker.groups.assignors import Assignment
from millstream.broker.groups.group import TopicsView
from millstream.wire.codec import MalformedMessage, decode_prefix, encode
from millstream.wire.messages.consumer_group_heartbeat import RequestTopicPartitions
from millstream.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_INT16 = struct.Struct(">h")


def read_version(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise MalformedMessage("an embedded consumer protocol has no version")
    version: int = _INT16.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(f"an embedded consumer protocol has version {version}")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    version = min(read_version(data), ConsumerProtocolSubscription.VERSIONS[1])
    return decode_prefix(ConsumerProtocolSubscription, data, version, position=2)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    version = min(read_version(data), ConsumerProtocolAssignment.VERSIONS[1])
    return decode_prefix(ConsumerProtocolAssignment, data, version, position=2)[0]


def write_assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicsView, version: int) -> bytes:
    """Partitions by topic id (a set, or a mapping by partition); topics that are gone are left out."""
    version = min(version, ConsumerProtocolAssignment.VERSIONS[1])
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=sorted(numbers))
        for topic_id, numbers in partitions.items()
        if (name := topics.topic_name(topic_id)) is not None
    ]
    return _INT16.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def assignment_by_id(assignment: ConsumerProtocolAssignment, topics: TopicsView) -> Assignment:
    return {
        topic_id: frozenset(topic.partitions)
        for topic in assignment.assigned_partitions
        if topic.partitions and (topic_id := topics.topic_id(topic.topic)) is not None
    }


def owned_by_id(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> list[RequestTopicPartitions]:
    """What a rejoining member says it still owns. One that does not say (version 0) has revoked everything."""
    return [
        RequestTopicPartitions(topic_id=topic_id, partitions=topic.partitions)
        for topic in subscription.owned_partitions
        if (topic_id := topics.topic_id(topic.topic)) is not None
    ]

"""The records of `__consumer_offsets`, against bytes that Apache Kafka's own classes write."""

import struct

import pytest

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups.records import decode_record, encode_record, offset_commit_version, tombstone
from millstream.wire.codec import MalformedMessage
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
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicPartition,
)


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def test_an_offset_commit_byte_by_byte() -> None:
    topic_id = bytes(range(16))
    record = encode_record(
        OffsetCommitKey(group="group", topic="topic", partition=3),
        OffsetCommitValue(offset=42, leader_epoch=5, metadata="m", commit_timestamp=1_700, topic_id=topic_id),
        4,
    )
    assert record.key == b"\x00\x01" + string("group") + string("topic") + b"\x00\x00\x00\x03"
    assert record.value == (
        b"\x00\x04" + struct.pack(">qi", 42, 5) + b"\x02m" + struct.pack(">q", 1_700) + b"\x01\x00\x10" + topic_id
    )


def test_an_offset_commit_with_an_expire_timestamp_byte_by_byte() -> None:
    value = OffsetCommitValue(offset=42, metadata="m", commit_timestamp=1_700, expire_timestamp=1_800)
    record = encode_record(OffsetCommitKey(group="g", topic="t", partition=0), value, offset_commit_version(value))
    assert record.value == b"\x00\x01" + struct.pack(">q", 42) + string("m") + struct.pack(">qq", 1_700, 1_800)


def test_group_metadata_byte_by_byte() -> None:
    record = encode_record(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=2,
            protocol="range",
            leader=None,
            current_state_timestamp=99,
            members=[
                MemberMetadata(
                    member_id="m",
                    client_id="c",
                    client_host="/127.0.0.1",
                    rebalance_timeout=6,
                    session_timeout=5,
                    subscription=b"s",
                    assignment=b"a",
                )
            ],
        ),
        3,
    )
    assert record.key == b"\x00\x02" + string("g")
    assert record.value == (
        b"\x00\x03"
        + string("consumer")
        + struct.pack(">i", 2)
        + string("range")
        + b"\xff\xff"
        + struct.pack(">qi", 99, 1)
        + string("m")
        + b"\xff\xff"
        + string("c")
        + string("/127.0.0.1")
        + struct.pack(">ii", 6, 5)
        + b"\x00\x00\x00\x01s\x00\x00\x00\x01a"
    )


ALL: list[tuple[int, Message, Message]] = [
    (1, OffsetCommitKey(group="g", topic="t", partition=1), OffsetCommitValue(offset=1)),
    (2, GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer")),
    (3, ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3, metadata_hash=4)),
    (
        5,
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(subscribed_topic_names=["t"], server_assignor=None),
    ),
    (
        6,
        ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=4),
    ),
    (
        7,
        ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=[TopicPartition(topic_id=bytes(16), partitions=[1])]),
    ),
    (
        8,
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
        ConsumerGroupCurrentMemberAssignmentValue(member_epoch=4),
    ),
    (
        16,
        ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*"),
        ConsumerGroupRegularExpressionValue(topics=["t"], version=1, timestamp=2),
    ),
]


@pytest.mark.parametrize(("record_type", "key", "value"), ALL)
def test_every_record_comes_back(record_type: int, key: Message, value: Message) -> None:
    record = encode_record(key, value)
    assert int.from_bytes(record.key[:2], "big") == record_type
    assert decode_record(record) == (key, value)
    assert decode_record(tombstone(key)) == (key, None)


def test_a_tombstone_of_partition_metadata_is_known() -> None:
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    assert tombstone(key).key[:2] == b"\x00\x04"
    assert decode_record(tombstone(key)) == (key, None)


def test_offset_commits_of_old_brokers_are_read() -> None:
    key = b"\x00\x00" + string("g") + string("t") + b"\x00\x00\x00\x01"
    value = b"\x00\x03" + struct.pack(">qi", 7, 1) + string("") + struct.pack(">q", 9)
    decoded = decode_record(KeyValue(key, value))
    assert decoded is not None
    assert decoded[0] == OffsetCommitKey(group="g", topic="t", partition=1)
    assert decoded[1] == OffsetCommitValue(offset=7, leader_epoch=1, commit_timestamp=9)


def test_types_of_others_are_passed_over() -> None:
    assert decode_record(KeyValue(b"\x00\x0b" + string("share"), b"\x00\x00")) is None


@pytest.mark.parametrize(
    "record",
    [
        KeyValue(b"\x00", None),
        KeyValue(b"\x00\x02\x00\x09g", None),
        KeyValue(b"\x00\x02\x00\x01g", b"\x00"),
        KeyValue(b"\x00\x02\x00\x01g", b"\x00\x09"),
        KeyValue(b"\x00\x02\x00\x01g", b"\x00\x03\x00"),
    ],
)
def test_what_cannot_be_read_is_an_error(record: KeyValue) -> None:
    with pytest.raises(MalformedMessage):
        decode_record(record)

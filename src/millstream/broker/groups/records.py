"""The records of `__consumer_offsets`, byte for byte as Apache Kafka's group coordinator writes and reads them.

    key   = int16 record type, then the key struct
    value = int16 version of the value, then the value struct in that version; no value at all is a tombstone

    type  record                                  value version written
    1     OffsetCommit                            4 (1 when it has an expire timestamp)
    2     GroupMetadata                           3
    3     ConsumerGroupMetadata                   0
    4     ConsumerGroupPartitionMetadata          0 (only ever deleted nowadays)
    5     ConsumerGroupMemberMetadata             0
    6     ConsumerGroupTargetAssignmentMetadata   0
    7     ConsumerGroupTargetAssignmentMember     0
    8     ConsumerGroupCurrentMemberAssignment    0
    16    ConsumerGroupRegularExpression          0

Type 0 is the OffsetCommit of very old brokers and is read as type 1. A type that is not in the table (share and streams
groups, a newer broker's) is reported as None by `decode_record` and passed over in replay, as Kafka does; a known type
with a version of the value we do not know is an error, since passing it over would lose state.
"""

from __future__ import annotations

import struct

from millstream.broker.coordinator_log import KeyValue
from millstream.wire.codec import MalformedMessage, decode, encode
from millstream.wire.message import Message
from millstream.wire.messages.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

GROUP_METADATA_VALUE_VERSION = 3

_INT16 = struct.Struct(">h")
_TYPES: dict[int, tuple[type[Message], type[Message]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}


def encode_record(key: Message, value: Message, version: int = 0) -> KeyValue:
    """A record; `version` is that of the value."""
    return KeyValue(_INT16.pack(key.API_KEY) + encode(key, 0), _INT16.pack(version) + encode(value, version))


def tombstone(key: Message) -> KeyValue:
    return KeyValue(_INT16.pack(key.API_KEY) + encode(key, 0), None)


def decode_record(record: KeyValue) -> tuple[Message, Message | None] | None:
    """Key and value of a record, the value None for a tombstone; None if the record's type is not ours to read."""
    try:
        (record_type,) = _INT16.unpack_from(record.key)
        classes = _TYPES.get(record_type)
        if classes is None:
            return None
        key_class, value_class = classes
        key = decode(key_class, memoryview(record.key)[2:], 0)
        if record.value is None:
            return key, None
        (version,) = _INT16.unpack_from(record.value)
        if not value_class.VERSIONS[0] <= version <= value_class.VERSIONS[1]:
            raise MalformedMessage(f"{value_class.__name__} has no version {version}")
        return key, decode(value_class, memoryview(record.value)[2:], version)
    except struct.error as error:
        raise MalformedMessage("a group record has no room for its type or version") from error


def offset_commit_version(value: OffsetCommitValue) -> int:
    """Only version 1 can say when the offset expires; it is what OffsetCommit up to v4 may ask for."""
    return 4 if value.expire_timestamp == -1 else 1

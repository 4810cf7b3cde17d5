"""The records of `__transaction_state`, byte for byte as Apache Kafka's transaction coordinator writes and reads them.

    key   = int16 0, then TransactionLogKey (the transactional id)
    value = int16 version, then TransactionLogValue in that version; no value at all is a tombstone

Version 1 of the value (flexible; the previous and next producer id and the client's transaction version are tagged
fields) is written when the feature `transaction.version` is at least 1, version 0 before that. The partitions are null
in state Empty. A key or value of a version we do not know is a newer broker's and is passed over, as Kafka does; one
that cannot be read is a ValueError.
"""

from __future__ import annotations

import struct

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.transactions.metadata import NO_PRODUCER_ID, TopicPartition, TransactionMetadata
from millstream.broker.transactions.states import TransactionState
from millstream.wire.codec import MalformedMessage, decode, encode
from millstream.wire.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

_INT16 = struct.Struct(">h")
_KEY_VERSION = 0


def encode_key(transactional_id: str) -> bytes:
    return _INT16.pack(_KEY_VERSION) + encode(TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)


def encode_record(metadata: TransactionMetadata, transaction_version: int) -> KeyValue:
    """The record that makes `metadata` the state of its transactional id."""
    version = 1 if transaction_version >= 1 else 0
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id if version else NO_PRODUCER_ID,
        next_producer_id=metadata.next_producer_id if version else NO_PRODUCER_ID,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if metadata.state is TransactionState.EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic(metadata.partitions).items()],
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_transaction_version if version else 0,
    )
    return KeyValue(encode_key(metadata.transactional_id), _INT16.pack(version) + encode(value, version))


def decode_record(record: KeyValue) -> tuple[str, TransactionMetadata | None] | None:
    """The transactional id and its state, None for the state if this is a tombstone; None for an unknown version."""
    key_version = _version(record.key)
    if key_version != _KEY_VERSION:
        return None
    transactional_id = decode(TransactionLogKey, record.key[_INT16.size :], _KEY_VERSION).transactional_id
    if record.value is None:
        return transactional_id, None
    version = _version(record.value)
    low, high = TransactionLogValue.VERSIONS
    if not low <= version <= high:
        return None
    value = decode(TransactionLogValue, record.value[_INT16.size :], version)
    return transactional_id, TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            (item.topic, partition) for item in value.transaction_partitions or () for partition in item.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )


def _version(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise MalformedMessage("a coordinator record without a version")
    version: int = _INT16.unpack_from(data)[0]
    return version


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Sorted, so that the same state always has the same bytes."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics

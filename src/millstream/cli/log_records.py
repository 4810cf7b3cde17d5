"""The records of Kafka's internal topics as plain data, for `millstream log dump --decode`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Decoder = Callable[[bytes | None, bytes | None], dict[str, Any] | None]
"""From a record's key and value to its type, key and value; None if it is none of the topic's records."""
DECODERS = ("offsets", "transactions")


def decoder_of(what: str) -> Decoder:
    from millstream.broker.coordinator_log import KeyValue
    from millstream.broker.groups import records as group_records
    from millstream.broker.transactions import records as transaction_records

    def decode(key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
        """None for a marker, another topic's record, or one that cannot be read."""
        if key is None:
            return None
        record = KeyValue(key, value)
        try:
            if what == "offsets":
                found = group_records.decode_record(record)
                if found is None:
                    return None
                name = type(found[0]).__name__.removesuffix("Key")
                return {"type": name, "key": _message(found[0]), "value": found[1] and _message(found[1])}
            transaction = transaction_records.decode_record(record)
            if transaction is None:
                return None
            state = transaction[1]
            fields = None
            if state is not None:
                fields = {
                    "state": state.state.name,
                    "producer_id": state.producer_id,
                    "producer_epoch": state.producer_epoch,
                    "timeout_ms": state.timeout_ms,
                    "partitions": sorted(f"{topic}-{number}" for topic, number in state.partitions),
                    "started_ms": state.start_ms,
                    "last_update_ms": state.last_update_ms,
                }
            return {"type": "Transaction", "key": {"transactional_id": transaction[0]}, "value": fields}
        except ValueError:
            return None

    return decode


def _message(value: Any) -> Any:
    """A protocol message as plain data."""
    from millstream.wire.message import Message

    if isinstance(value, Message):
        return {field.name: _message(getattr(value, field.name)) for field in value.FIELDS}
    if isinstance(value, list):
        return [_message(one) for one in value]
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value

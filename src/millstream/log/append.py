"""What is checked and changed on a batch's way into the log, before anything is written.

A client's records must be exactly one batch of magic 2 with base offset 0, not longer than `max.message.bytes`, with a
sound CRC, a count that matches its offsets, no control batch, a sequence if there is a producer id. Otherwise:
INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, in Kafka's order of checks. Timestamps beyond the topic's bounds are
INVALID_TIMESTAMP, a record without a key on a compacted topic INVALID_RECORD, both with the list of the bad records.

The records are opened only where something needs them: a compacted topic's keys, another codec than the producer's, a
timestamp that is out of bounds. Otherwise the batch is taken as it came; with LogAppendTime two header fields change.

Departure from Kafka, which walks through all records of every batch: here the number of records is verified against
the bytes for small batches (see `_verify_count`); in larger ones the header's count and max timestamp are believed, as
they stand under the producer's own CRC.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.log.config import LONG_MAX, LogConfig
from millstream.log.filesystem import Bytes
from millstream.wire.batches import (
    ATTRIBUTES_OFFSET,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    Record,
    build_batch,
    check_record_lengths,
    parse_header,
    read_records,
    set_max_timestamp,
)
from millstream.wire.compression import Compression, decompress
from millstream.wire.errors import ErrorCode, KafkaError

# How many records' lengths are walked over, and how many packed bytes are unpacked, to verify a batch's count.
_VERIFIED_RECORDS: Final = 8
_VERIFIED_PACKED_BYTES: Final = 1024
_VERIFIED_UNPACKED_BYTES: Final = 4 * 1024 * 1024
_RECORDS_OFFSET: Final = HEADER_SIZE - ATTRIBUTES_OFFSET
# The shortest thing Kafka takes for a batch: the smallest record of magic 0.
_MIN_BATCH_LENGTH: Final = 14


class AppendOrigin(IntEnum):
    """Who appends: a client through Produce, or a coordinator writing its own records or markers."""

    CLIENT = 0
    COORDINATOR = 1


class RecordError(NamedTuple):
    batch_index: int
    message: str


class RecordValidationError(KafkaError):
    """Some records of a batch were refused; the batch was not appended."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class ValidBatch(NamedTuple):
    """A batch ready to be written, once base offset and leader epoch are stamped on it: the bytes are writable."""

    header: BatchHeader
    data: bytearray | memoryview
    max_timestamp: int
    log_append_time: int


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def batch_size_at(data: bytes | memoryview, position: int) -> int | None:
    """The size of the batch at `position`, None if the bytes end before it does. CORRUPT_MESSAGE for nonsense."""
    remaining = len(data) - position
    if remaining < LOG_OVERHEAD:
        return None
    length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if length < _MIN_BATCH_LENGTH:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch says it is {length} bytes long")
    if remaining <= MAGIC_OFFSET:
        return None
    magic = data[position + MAGIC_OFFSET]
    if magic > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch has the magic {magic}")
    size = length + LOG_OVERHEAD
    return None if size > remaining else size


def validate(
    records: bytes | memoryview, config: LogConfig, origin: AppendOrigin, now: int, header: BatchHeader | None = None
) -> ValidBatch:
    """Check the one batch in `records` and make it ready for this topic. Raises KafkaError, nothing is changed.

    `header`: of that batch, if somebody has read it already. If `records` can be written to, the result is a view of
    them, not a copy.
    """
    if header is None or header.magic != MAGIC or header.batch_length + LOG_OVERHEAD != len(records):
        header = _only_header(records)
    base_offset, length, _, _, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, count = header
    size = length + LOG_OVERHEAD
    client = origin is AppendOrigin.CLIENT
    if client and base_offset != 0:
        raise _invalid(f"the base offset of a produced batch must be 0, not {base_offset}")
    if size > config.max_message_bytes:
        raise _too_large(size, config)
    covered = records[ATTRIBUTES_OFFSET:size]
    if crc32c(covered) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the CRC of the record batch does not match its bytes")
    if client and (
        count <= 0
        or count != last_offset_delta + 1
        or attributes & CONTROL_BIT
        or (producer_id >= 0 and base_sequence < 0)
    ):
        raise _invalid(_what_is_wrong(header))
    source = header.compression
    target = config.target_compression(source)
    if source is not target and not attributes & CONTROL_BIT:
        return _open_and_rebuild(records, header, config, target, now, client=client)
    if client:
        if config.compact:
            checked = read_records(records, 0, header)
            _check_records(checked, header, config, now)
            if any(record.offset != index for index, record in enumerate(checked)):
                return _rebuild(checked, header, config, target, now)
        else:
            _verify_count(covered, count, source)
    return _as_it_came(records, header, config, now, client)


def _only_header(records: bytes | memoryview) -> BatchHeader:
    """The header of the one batch that `records` must be."""
    size = batch_size_at(records, 0)
    if size is None:
        raise _invalid("a produce request must have exactly one record batch for a partition, this one has none")
    magic = records[MAGIC_OFFSET]
    if magic != MAGIC:
        raise _invalid(f"only record batches of magic 2 can be produced, this one has magic {magic}")
    if len(records) != size and batch_size_at(records, size) is not None:
        raise _invalid("a produce request must have exactly one record batch for a partition, this one has more")
    if size < HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the record batch has {size} bytes, less than its header")
    return parse_header(records)


def _what_is_wrong(header: BatchHeader) -> str:
    """Why a client must not send a batch with this header."""
    count = header.record_count
    if header.last_offset_delta < 0:
        return f"the record batch has the last offset delta {header.last_offset_delta}"
    if count <= 0:
        return f"the record batch says it has {count} records"
    if count != header.last_offset_delta + 1:
        return f"{count} records do not go with the last offset delta {header.last_offset_delta}"
    if header.is_control:
        return "clients cannot write control batches"
    return f"the batch of producer {header.producer_id} has the sequence {header.base_sequence}"


def _verify_count(covered: Bytes, count: int, codec: Compression) -> None:
    """Do the bytes hold as many records as the batch says? Bounded work: see the module's contract."""
    if codec is Compression.NONE:
        check_record_lengths(covered, _RECORDS_OFFSET, count, _VERIFIED_RECORDS)
    elif len(covered) <= _VERIFIED_PACKED_BYTES:
        unpacked = decompress(codec, bytes(covered[_RECORDS_OFFSET:]), _VERIFIED_UNPACKED_BYTES)
        check_record_lengths(unpacked, 0, count, _VERIFIED_RECORDS)


def _as_it_came(
    records: bytes | memoryview, header: BatchHeader, config: LogConfig, now: int, client: bool
) -> ValidBatch:
    if config.log_append_time:
        if header.attributes & TIMESTAMP_TYPE_BIT and client:
            _refuse_log_append_time(header)
        return _stamped(records, header, now, 1, now)
    max_timestamp = header.max_timestamp
    if header.attributes & TIMESTAMP_TYPE_BIT and client:
        if max_timestamp == NO_TIMESTAMP:
            _refuse_log_append_time(header)
        return _stamped(records, header, max_timestamp, 0, NO_TIMESTAMP)
    if client and max_timestamp != NO_TIMESTAMP:
        # The base timestamp is the first record's; with a delete horizon or a max below it the header cannot be right.
        # Where there is a bound in the past, any record may be older than the first.
        earliest = header.base_timestamp
        if (
            max_timestamp - now > config.message_timestamp_after_max_ms
            or now - earliest > config.message_timestamp_before_max_ms
            or max_timestamp < earliest
            or (header.record_count > 1 and config.message_timestamp_before_max_ms != LONG_MAX)
        ):
            opened = read_records(records, 0, header)
            _check_records(opened, header, config, now)
            greatest = max(record.timestamp for record in opened)
            if greatest != max_timestamp:
                return _stamped(records, header, greatest, 0, NO_TIMESTAMP)
    return ValidBatch(header, _writable(records, header), max_timestamp, NO_TIMESTAMP)


def _writable(records: bytes | memoryview, header: BatchHeader) -> bytearray | memoryview:
    size = header.batch_length + LOG_OVERHEAD
    batch = records if len(records) == size else records[:size]
    return bytearray(batch) if isinstance(batch, bytes) or batch.readonly else batch


def _refuse_log_append_time(header: BatchHeader) -> None:
    reason = "a producer must not set the timestamp type LogAppendTime"
    errors = [RecordError(index, reason) for index in range(header.record_count)]
    raise RecordValidationError(ErrorCode.INVALID_TIMESTAMP, reason, errors)


def _stamped(
    records: bytes | memoryview, header: BatchHeader, max_timestamp: int, timestamp_type: int, append_time: int
) -> ValidBatch:
    batch = bytearray(records[: header.size_in_bytes])
    set_max_timestamp(batch, max_timestamp, timestamp_type)
    return ValidBatch(parse_header(batch), batch, max_timestamp, append_time)


def _open_and_rebuild(
    records: bytes | memoryview, header: BatchHeader, config: LogConfig, target: Compression, now: int, *, client: bool
) -> ValidBatch:
    opened = read_records(records, 0, header)
    if client:
        _check_records(opened, header, config, now)
    return _rebuild(opened, header, config, target, now)


def _rebuild(
    records: list[Record], header: BatchHeader, config: LogConfig, target: Compression, now: int
) -> ValidBatch:
    append_time = now if config.log_append_time else None
    batch = build_batch(
        [record._replace(offset=index) for index, record in enumerate(records)],
        compression=target,
        level=config.compression_level(target),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        log_append_time=append_time,
    )
    if len(batch) > config.max_message_bytes:
        raise _too_large(len(batch), config)
    max_timestamp = max(record.timestamp for record in records) if append_time is None else append_time
    append_time = NO_TIMESTAMP if append_time is None else append_time
    return ValidBatch(parse_header(batch), bytearray(batch), max_timestamp, append_time)


def _check_records(records: list[Record], header: BatchHeader, config: LogConfig, now: int) -> None:
    """Keys and timestamps, record by record."""
    errors: list[RecordError] = []
    bad_timestamp = False
    earliest = now - config.message_timestamp_before_max_ms
    latest = now + config.message_timestamp_after_max_ms
    log_append_time = config.log_append_time
    for index, record in enumerate(records):
        if config.compact and record.key is None:
            errors.append(RecordError(index, "a compacted topic cannot take a record without a key"))
        elif not log_append_time and record.timestamp != NO_TIMESTAMP:
            if not earliest <= record.timestamp <= latest:
                bad_timestamp = True
                errors.append(
                    RecordError(index, f"the timestamp {record.timestamp} is not within [{earliest}, {latest}]")
                )
        elif header.timestamp_type:
            bad_timestamp = True
            errors.append(RecordError(index, "a producer must not set the timestamp type LogAppendTime"))
    if not errors:
        return
    if bad_timestamp:
        raise RecordValidationError(ErrorCode.INVALID_TIMESTAMP, "records with an invalid timestamp", errors)
    first = "; ".join(f"record {error.batch_index}: {error.message}" for error in errors[:3])
    raise RecordValidationError(ErrorCode.INVALID_RECORD, f"{len(errors)} records are invalid: {first}", errors)


def _too_large(size: int, config: LogConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the record batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
    )

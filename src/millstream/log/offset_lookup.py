"""Offsets by time, as ListOffsets asks for them.

Special timestamps: -1 latest, -2 earliest, -3 the offset of the greatest timestamp, -4 earliest on local disk (here the
same as -2), -5 latest in tiered storage and -6 the first not yet uploaded (there is no tiered storage: offset -1).
The batches are found with the time and the offset index; only the batch that holds the answer is opened.
"""

from typing import Final, NamedTuple

from millstream.log.fetch import READ_UNCOMMITTED, Isolation
from millstream.log.partition_log import PartitionLog
from millstream.log.segment import Segment
from millstream.wire.batches import NO_LEADER_EPOCH, NO_TIMESTAMP, BatchHeader, Record, read_records
from millstream.wire.errors import ErrorCode, KafkaError

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

UNKNOWN_OFFSET: Final = -1


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


NOT_FOUND: Final = TimestampAndOffset(NO_TIMESTAMP, UNKNOWN_OFFSET, NO_LEADER_EPOCH)


def fetch_offset(log: PartitionLog, timestamp: int, isolation: Isolation = READ_UNCOMMITTED) -> TimestampAndOffset:
    """The answer for one of the special timestamps, or the first record whose timestamp is not below `timestamp`.

    Nothing that the reader's isolation hides is found. NOT_FOUND if there is no such record.
    """
    visible = log.high_watermark if isolation is READ_UNCOMMITTED else log.last_stable_offset
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, visible, log.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_for_offset(log.log_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    try:
        found = _max_timestamp(log) if timestamp == MAX_TIMESTAMP else _first_at(log, timestamp)
    except OSError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic}-{log.partition}: {error}") from error
    return found if found is not None and found.offset < visible else NOT_FOUND


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    return read_records(segment.file.read_at(header.size_in_bytes, position), 0, header)


def _first_at(log: PartitionLog, timestamp: int) -> TimestampAndOffset | None:
    start_offset = log.log_start_offset
    for segment in log.segments:
        if segment.max_timestamp < timestamp:
            continue
        position = segment.offset_index.lookup(max(segment.time_index.lookup(timestamp), start_offset))
        for where, header in segment.scan(position):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in _records(segment, where, header):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def _max_timestamp(log: PartitionLog) -> TimestampAndOffset | None:
    latest = max(log.segments, key=lambda segment: segment.max_timestamp)
    greatest = latest.max_timestamp
    if greatest == NO_TIMESTAMP:
        return None
    for position, header in latest.scan(latest.offset_index.lookup(latest.offset_of_max_timestamp)):
        if header.max_timestamp != greatest:
            continue
        if header.timestamp_type:
            return TimestampAndOffset(greatest, header.base_offset, header.partition_leader_epoch)
        for record in _records(latest, position, header):
            if record.timestamp == greatest:
                return TimestampAndOffset(greatest, record.offset, header.partition_leader_epoch)
    return None

"""Which segments a log gives up: those before the log start offset, and with cleanup.policy=delete those that are too
much (`retention.bytes`) or too old (`retention.ms`).

Only from the beginning of the log, only whole segments, never one with records above the high watermark. If time or
size condemn all of them, a new active segment is begun first. The log start offset moves before the files do: after a
crash in between they are deleted again.
"""

from collections.abc import Callable

from millstream.log.partition_log import PartitionLog
from millstream.log.segment import Segment
from millstream.wire.errors import ErrorCode, KafkaError

Condemned = Callable[[Segment, Segment | None], bool]


def delete_old_segments(log: PartitionLog, now: int) -> int:
    """Delete what the log need not keep any more; returns how many segments that were."""
    try:
        deleted = _delete(log, _before_log_start(log), now)
        if log.config.delete:
            deleted += _delete(log, _too_much(log), now)
            deleted += _delete(log, _too_old(log, now), now)
    except OSError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.topic}-{log.partition}: {error}") from error
    return deleted


def _before_log_start(log: PartitionLog) -> Condemned:
    return lambda _, following: following is not None and following.base_offset <= log.log_start_offset


def _too_much(log: PartitionLog) -> Condemned:
    limit = log.config.retention_bytes
    surplus = log.size - limit if limit >= 0 else -1

    def condemned(segment: Segment, _: Segment | None) -> bool:
        nonlocal surplus
        if surplus < 0 or surplus - segment.size < 0:
            return False
        surplus -= segment.size
        return True

    return condemned


def _too_old(log: PartitionLog, now: int) -> Condemned:
    limit = log.config.retention_ms
    return lambda segment, _: limit >= 0 and now - segment.largest_timestamp > limit


def _delete(log: PartitionLog, condemned: Condemned, now: int) -> int:
    segments = list(log.segments)
    gone: list[Segment] = []
    for index, segment in enumerate(segments):
        following = segments[index + 1] if index + 1 < len(segments) else None
        end_offset = log.log_end_offset if following is None else following.base_offset
        if following is None and segment.size == 0:
            break
        if log.high_watermark < end_offset or not condemned(segment, following):
            break
        gone.append(segment)
    if not gone:
        return 0
    if len(gone) == len(segments):
        log.roll()
    index = len(gone)
    log.advance_log_start_offset(log.segments[index].base_offset)
    log.segments.delete(gone, now + log.config.file_delete_delay_ms)
    log.forget_positions()
    return len(gone)

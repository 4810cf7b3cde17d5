"""What of a log is on the disk for good: the recovery point, flushes, and what happens when an fsync fails.

Two marks. Up to the *flushed offset* the records are synced; acknowledgements that wait for `flush.messages` go by it.
Up to the *recovery point* the indexes and a snapshot of the producer state are synced as well, so that a start after a
crash need not look at anything before it. It moves when a segment is rolled, and, so that a long active segment does
not mean a long recovery, whenever many batches or bytes have come since; always in the worker, never in the way of an
append.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.log.filesystem import File
from millstream.log.replay import restore_producers, snapshot_offsets, snapshot_path
from millstream.log.segment import Segment

if TYPE_CHECKING:
    from millstream.log.partition_log import PartitionLog

# A start after a crash reads at most about this much of a log: less than a second out of the page cache. As much as a
# segment by default: syncing more often costs a tenth of the server's CPU, and the kernel writes pages back by itself.
RECOVERY_BYTES: Final = 1024 * 1024 * 1024
RECOVERY_BATCHES: Final = 100_000


class LogFlush(NamedTuple):
    """The files with unsynced records, and the offset up to which they are durable once synced."""

    files: list[File]
    end_offset: int

    def sync(self) -> None:
        for file in self.files:
            file.sync()


def begin_flush(log: "PartitionLog") -> LogFlush:
    """What to sync so that everything appended so far is durable."""
    files = [segment.file for segment in log.segments.between(log.flushed_offset, log.log_end_offset)]
    return LogFlush(files, log.log_end_offset)


def write_snapshot(log: "PartitionLog") -> None:
    """The producer state at the log end offset. Not synced; so one that is there and synced already is left alone."""
    path = snapshot_path(log.directory, log.log_end_offset)
    file_system = log.context.file_system
    if log.recovery_point < log.log_end_offset or not file_system.exists(path):
        file_system.write_atomically(path, log.producers.encode(), sync=False)


def advance_recovery_point(log: "PartitionLog") -> None:
    """Begin to make the log durable up to its end, in the worker. An error changes nothing: it is tried again later."""
    log.unsynced_batches = 0
    log.unsynced_from = log.segments.active.size
    if log.recovery_point >= log.log_end_offset or log.closed:
        return
    try:
        log.segments.active.write_indexes()
        write_snapshot(log)
        sync_in_background(log, log.segments.between(log.recovery_point, log.log_end_offset))
    except OSError:
        return


def sync_in_background(log: "PartitionLog", segments: list[Segment]) -> None:
    """Sync these segments and the snapshot at the log end offset, which becomes the recovery point."""
    offset, generation = log.log_end_offset, log.generation
    file_system = log.context.file_system
    files = [file for segment in segments for file in segment.files_to_sync()]
    files.append(file_system.open(snapshot_path(log.directory, offset)))

    def sync() -> None:
        for file in files:
            file.sync()
        file_system.sync_directory(log.directory)

    def done(error: BaseException | None) -> None:
        if error is not None or log.closed or log.generation != generation or offset <= log.recovery_point:
            return
        _drop_snapshot(log, log.recovery_point)
        log.recovery_point = offset
        log.flushed_offset = max(log.flushed_offset, offset)
        if offset > log.high_watermark:
            log.set_high_watermark(offset)
        log.context.checkpoint_needed()

    log.context.worker.submit(sync, done)


def _drop_snapshot(log: "PartitionLog", offset: int) -> None:
    """The snapshot of a former recovery point inside a segment is of no use any more."""
    if log.segments[max(log.segments.floor_index(offset), 0)].base_offset != offset:
        try:
            log.context.file_system.remove(snapshot_path(log.directory, offset))
        except OSError:
            return


def sync_all(log: "PartitionLog") -> None:
    """Sync everything behind the recovery point, and the snapshot at the log end offset. Blocks: for closing."""
    if log.recovery_point >= log.log_end_offset:
        return
    for segment in log.segments.between(log.recovery_point, log.log_end_offset):
        for file in segment.files_to_sync():
            file.sync()
    file_system = log.context.file_system
    file_system.open(snapshot_path(log.directory, log.log_end_offset)).sync()
    file_system.sync_directory(log.directory)


def take_back_unflushed(log: "PartitionLog") -> bool:
    """An fsync failed: nobody knows what of the unsynced bytes is on the disk, and a later fsync would not tell.

    So the records above the high watermark, which nobody has seen and no producer was told of, are cut off. False if
    that failed as well.
    """
    log.generation += 1
    offset = log.high_watermark
    segments = log.segments
    try:
        found = log.reader.find(offset) if offset < log.log_end_offset else None
        if found is not None:
            segment, position = found
            segments.drop_from(segments.index_of(segment) + 1)
            segment.truncate_to_position(position, offset)
        log.leader_epochs.truncate_from_end(offset)
        names = [entry.name for entry in log.context.file_system.entries(log.directory)]
        snapshots = snapshot_offsets(names)
        while snapshots and snapshots[-1] > offset:
            log.context.file_system.remove(snapshot_path(log.directory, snapshots.pop()))
        restore_producers(log.context, log.producers, log.leader_epochs, segments, snapshots, offset, len(segments))
    except OSError:
        return False
    log.reader.forget()
    log.log_end_offset = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.flushed_offset = min(log.flushed_offset, offset)
    log.producers.on_high_watermark(offset)
    log.update_last_stable_offset()
    return True

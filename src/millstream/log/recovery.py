"""Opening a log: find out from its files where it ends and what its producers did.

After a clean shutdown nothing is scanned but the few batches behind the last index entry. Otherwise the segments behind
the recovery point are read (everything before it was synced): each batch's length, magic, offsets and CRC are checked,
the log is cut at the first one that is not sound, and the indexes of these segments are built anew. Whatever a crash
can leave is dealt with: torn tails, `.cleaned` and `.swap` files of a broken-off compaction, `.deleted` files, missing
or half-written indexes, snapshots ahead of the log.

The producer state is the newest sound snapshot and a replay of the batch headers behind it.
"""

from typing import NamedTuple
from uuid import UUID

from millstream.log.config import LogConfig
from millstream.log.context import LogContext
from millstream.log.filesystem import Entry
from millstream.log.leader_epochs import FILE_NAME as EPOCHS_NAME
from millstream.log.leader_epochs import LeaderEpochs
from millstream.log.offset_index import ENTRY as OFFSET_ENTRY
from millstream.log.partition_log import PartitionLog
from millstream.log.producer_state import ProducerState
from millstream.log.replay import replay_batch, restore_producers, snapshot_offsets, snapshot_path
from millstream.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    Segment,
    segment_name,
)
from millstream.log.segments import CLEANED_SUFFIX, SWAP_SUFFIX, Segments
from millstream.log.time_index import ENTRY as TIME_ENTRY
from millstream.wire.batches import BatchHeader, check_crc, parse_header


class Recovered(NamedTuple):
    """A log and what opening it took: for the log line, and for tests."""

    log: PartitionLog
    scanned_bytes: int
    truncated_bytes: int


def open_log(
    context: LogContext,
    directory: str,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> PartitionLog:
    """The log in `directory`, which is made if it is not there. Raises OSError."""
    return recover_log(
        context,
        directory,
        topic,
        partition,
        topic_id,
        config,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
    ).log


def recover_log(
    context: LogContext,
    directory: str,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
) -> Recovered:
    """As `open_log`, and say what was read."""
    context.file_system.make_directory(directory)
    files = _tidy(context, directory)
    bases = sorted(int(name.removesuffix(LOG_SUFFIX)) for name in files if name.endswith(LOG_SUFFIX))
    producers = ProducerState(f"{topic}-{partition}", context.producer_expiration_ms)
    epochs = LeaderEpochs(context.file_system, directory, exists=EPOCHS_NAME in files)
    opening = _Opening(context, directory, config, files, producers, epochs)
    if not bases:
        opening.start_at(log_start_offset)
        end_offset = log_start_offset
    else:
        opening.load(bases)
        end_offset = opening.find_end(clean=clean, recovery_point=recovery_point)
        if end_offset < log_start_offset:
            # The records up to the log start offset are lost: nobody may read them, so nothing is missing.
            opening.segments.drop_from(0)
            opening.forget_producers()
            opening.start_at(log_start_offset)
            end_offset = log_start_offset
    for segment in opening.segments:
        context.open_files.forget(segment.log_path)  # many logs are opened, few are used at once
    start_offset = max(log_start_offset, opening.segments[0].base_offset)
    epochs.truncate_from_end(end_offset)
    if start_offset > 0:
        epochs.truncate_from_start(start_offset)
    log = PartitionLog(
        context,
        directory,
        topic,
        partition,
        topic_id,
        config,
        opening.segments,
        producers,
        epochs,
        log_start_offset=start_offset,
        log_end_offset=end_offset,
        recovery_point=end_offset if clean else min(recovery_point, opening.recovered_from, end_offset),
    )
    return Recovered(log, opening.scanned_bytes, opening.truncated_bytes)


def _tidy(context: LogContext, directory: str) -> dict[str, Entry]:
    """Remove what is left over, complete a broken-off replacement of segments, and list what remains."""
    file_system = context.file_system
    files = {entry.name: entry for entry in file_system.entries(directory)}
    swaps: list[int] = []
    changed = False
    for name in files:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")):
            file_system.remove(f"{directory}/{name}")
            changed = True
        elif name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            swaps.append(int(name.partition(".")[0]))
    for base_offset in swaps:
        _complete_swap(context, directory, base_offset, files)
    for name in files:
        if name.endswith(SWAP_SUFFIX) and int(name.partition(".")[0]) not in swaps:
            file_system.remove(f"{directory}/{name}")
            changed = True
    if changed or swaps:
        files = {entry.name: entry for entry in file_system.entries(directory)}
    for name in list(files):
        stem, _, _ = name.partition(".")
        if name.endswith(SUFFIXES[1:]) and stem + LOG_SUFFIX not in files:
            file_system.remove(f"{directory}/{name}")
            del files[name]
    return files


def _complete_swap(context: LogContext, directory: str, base_offset: int, files: dict[str, Entry]) -> None:
    """The compacted segment is whole: the segments it replaces go, it takes their place."""
    file_system = context.file_system
    name = segment_name(base_offset)
    swapped = [files.get(name + suffix + SWAP_SUFFIX) for suffix in SUFFIXES]
    sizes = [0 if entry is None else entry.size for entry in swapped]
    swap = Segment(context.open_files, directory, base_offset, sizes, active=False, created_ms=0, suffix=SWAP_SUFFIX)
    end_offset = base_offset + 1
    for _, header in swap.scan():
        end_offset = header.next_offset
    for existing in files:
        if existing.endswith(LOG_SUFFIX) and base_offset <= int(existing.removesuffix(LOG_SUFFIX)) < end_offset:
            stem = existing.removesuffix(LOG_SUFFIX)
            for suffix in SUFFIXES:
                file_system.remove(f"{directory}/{stem}{suffix}")
    for suffix in reversed(SUFFIXES):
        if name + suffix + SWAP_SUFFIX in files:
            file_system.rename(f"{directory}/{name}{suffix}{SWAP_SUFFIX}", f"{directory}/{name}{suffix}")
    context.open_files.forget(swap.log_path)


class _Opening:
    """The steps of opening, with what they find."""

    def __init__(
        self,
        context: LogContext,
        directory: str,
        config: LogConfig,
        files: dict[str, Entry],
        producers: ProducerState,
        epochs: LeaderEpochs,
    ) -> None:
        self._context = context
        self._directory = directory
        self._config = config
        self._files = files
        self.producers = producers
        self._epochs = epochs
        self.segments: Segments
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        # From this offset on the indexes are new, and not synced yet.
        self.recovered_from = 0

    def start_at(self, offset: int) -> None:
        """An empty log."""
        segment = Segment.create(
            self._context.open_files, self._directory, offset, created_ms=self._context.clock.now_ms()
        )
        self.segments = Segments(self._context.open_files, self._directory, [segment])

    def load(self, bases: list[int]) -> None:
        now = self._context.clock.now_ms()
        self.segments = Segments(
            self._context.open_files,
            self._directory,
            [
                Segment.load(
                    self._context.open_files,
                    self._directory,
                    base_offset,
                    self._files,
                    active=base_offset == bases[-1],
                    created_ms=now,
                )
                for base_offset in bases
            ],
        )

    def find_end(self, *, clean: bool, recovery_point: int) -> int:
        """The log end offset; the producer state is complete up to it afterwards."""
        first = len(self.segments) if clean else max(self.segments.floor_index(recovery_point), 0)
        for index in range(first):
            if not self._has_sound_indexes(self.segments[index]):
                self._rebuild_indexes(self.segments[index])
        if clean:
            end_offset = self._end_of(self.segments.active)
            self._restore_producers(end_offset, len(self.segments))
            return end_offset
        end_offset, position = self._where_to_begin(self.segments[first], recovery_point)
        self.recovered_from = end_offset
        self._restore_producers(end_offset, first + 1 if position else first)
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            if index > first:
                end_offset, position = segment.base_offset, 0
            following = self.segments[index + 1].base_offset if index + 1 < len(self.segments) else None
            end_offset, sound = self._recover(segment, end_offset, position, following)
            if not sound or (following is not None and end_offset > following):
                self.segments.drop_from(index + 1)
                break
            if following is not None:
                segment.seal()
        self._remove_snapshots_behind(end_offset)
        return end_offset

    def _where_to_begin(self, segment: Segment, recovery_point: int) -> tuple[int, int]:
        """Offset and position of the first batch that is not known to be on the disk.

        That is the recovery point, if the indexes (which were synced with it) lead to a batch that begins there or to
        the end of the file. Otherwise it is the beginning of the segment, and everything in it is read.
        """
        if recovery_point > segment.base_offset and self._has_sound_indexes(segment):
            segment.keep_indexes_before(recovery_point)
            start = segment.offset_index.last_position()
            if start < segment.size:
                reached = -1
                for position, header in segment.scan(start):
                    if header.base_offset >= recovery_point:
                        return (recovery_point, position) if reached == recovery_point else (segment.base_offset, 0)
                    reached, end = header.next_offset, position + header.size_in_bytes
                    self.scanned_bytes += header.size_in_bytes
                if reached == recovery_point:
                    return recovery_point, end
        return segment.base_offset, 0

    def _has_sound_indexes(self, segment: Segment) -> bool:
        name = segment_name(segment.base_offset)
        index, time_index = self._files.get(name + INDEX_SUFFIX), self._files.get(name + TIME_INDEX_SUFFIX)
        if index is None or time_index is None:
            return segment.size == 0
        return index.size % OFFSET_ENTRY.size == 0 and time_index.size % TIME_ENTRY.size == 0

    def _rebuild_indexes(self, segment: Segment) -> None:
        """Offset and time index from the batches; the transaction index cannot be had without the producer state."""
        segment.offset_index.reset()
        segment.time_index.reset()
        interval = self._config.index_interval_bytes
        for position, header in segment.scan():
            segment.note_batch(position, header.size_in_bytes, header.last_offset, header.max_timestamp, interval)
            self.scanned_bytes += header.size_in_bytes
        if segment is not self.segments.active:
            segment.seal()

    def _end_of(self, segment: Segment) -> int:
        end_offset = segment.base_offset
        for _, header in segment.scan(segment.offset_index.last_position()):
            end_offset = header.next_offset
            self.scanned_bytes += header.size_in_bytes
        return end_offset

    def _recover(self, segment: Segment, end_offset: int, begin: int, following: int | None) -> tuple[int, bool]:
        """Read a segment from position `begin` (`end_offset` is the offset there) and cut it where it is not sound.

        Returns its end offset and whether it was sound. Room behind its last batch is sound if nothing is missing
        before the `following` segment.
        """
        if begin:
            segment.load_max_timestamp(begin)
        else:
            segment.reset_indexes()
        valid = begin
        interval = self._config.index_interval_bytes
        for start, chunk in segment.chunks(begin):
            inside = 0
            while inside < len(chunk):
                header = parse_header(chunk, inside)
                size = header.size_in_bytes
                if not self._is_sound(segment, chunk, inside, header, end_offset):
                    break
                segment.note_batch(start + inside, size, header.last_offset, header.max_timestamp, interval)
                replay_batch(self.producers, self._epochs, segment, chunk, inside, header, write_index=True)
                end_offset = header.next_offset
                inside += size
            valid = start + inside
            if inside < len(chunk):
                break
        self.scanned_bytes += valid - begin
        sound = valid == segment.size
        if not sound:
            sound = segment.is_room(valid) and following in (None, end_offset)
            if not sound:
                self.truncated_bytes += segment.size - valid
            segment.truncate_to_position(valid, end_offset)
        segment.write_indexes()
        return end_offset, sound

    @staticmethod
    def _is_sound(segment: Segment, chunk: bytes, inside: int, header: BatchHeader, next_offset: int) -> bool:
        return (
            header.base_offset >= next_offset
            and header.last_offset_delta >= 0
            and header.last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
            and check_crc(chunk, inside, header)
        )

    def _restore_producers(self, end_offset: int, segment_count: int) -> None:
        self.scanned_bytes += restore_producers(
            self._context,
            self.producers,
            self._epochs,
            self.segments,
            snapshot_offsets(self._files),
            end_offset,
            segment_count,
        )

    def forget_producers(self) -> None:
        """Neither a record nor a snapshot of them is left."""
        self.producers.clear()
        self._remove_snapshots_behind(-1)

    def _remove_snapshots_behind(self, end_offset: int) -> None:
        for offset in snapshot_offsets(self._files):
            if offset > end_offset:
                self._context.file_system.remove(snapshot_path(self._directory, offset))

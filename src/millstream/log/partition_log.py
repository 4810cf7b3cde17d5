"""The log of one partition: append, read, and the offsets that say how far it goes.

Offsets, each at most the next: log start offset <= last stable offset <= high watermark <= log end offset. There is one
replica, so the high watermark is the log end offset; only records that wait for an fsync (`flush.messages`) are above
it until the flush ended. The last stable offset is the first offset of the oldest open transaction, or the high
watermark.

All methods are for the event loop's thread and none of them waits for an fsync. An I/O error is KAFKA_STORAGE_ERROR and
leaves the log as it was before the call: the check comes first, then the write, then the state.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from millstream.log.append import AppendOrigin, ValidBatch, validate
from millstream.log.config import LogConfig
from millstream.log.context import LogContext
from millstream.log.durability import (
    RECOVERY_BATCHES,
    RECOVERY_BYTES,
    LogFlush,
    advance_recovery_point,
    begin_flush,
    sync_all,
    sync_in_background,
    take_back_unflushed,
    write_snapshot,
)
from millstream.log.fetch import READ_UNCOMMITTED, FetchSlice, Isolation
from millstream.log.flush import FlushPlan
from millstream.log.leader_epochs import LeaderEpochs
from millstream.log.producer_state import (
    NO_TRANSACTION,
    ProducerEntry,
    ProducerState,
)
from millstream.log.reader import LogReader
from millstream.log.segment import Segment
from millstream.log.segments import Segments
from millstream.log.transaction_index import AbortedTransaction
from millstream.wire.batches import (
    NO_TIMESTAMP,
    BatchHeader,
    EndTxnMarker,
    control_batch,
    parse_header,
    stamp,
)
from millstream.wire.errors import ErrorCode, KafkaError


class AppendInfo(NamedTuple):
    """What became of an append. With `flush_needed` it is visible and may be acknowledged only after a flush."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
    flush_needed: bool


class PartitionLog:
    """Made by `recovery.open_log`, which finds out where the log ends."""

    __slots__ = (
        "_listeners",
        "_must_take_back",
        "closed",
        "config",
        "context",
        "directory",
        "flushed_offset",
        "generation",
        "high_watermark",
        "last_flush_ms",
        "last_stable_offset",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producers",
        "reader",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
        "unsynced_batches",
        "unsynced_from",
    )

    def __init__(
        self,
        context: LogContext,
        directory: str,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        segments: Segments,
        producers: ProducerState,
        leader_epochs: LeaderEpochs,
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self.context = context
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.segments = segments
        self.producers = producers
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_end_offset
        self.last_stable_offset = log_end_offset
        # Up to the recovery point records and indexes are durable, up to the flushed offset the records.
        self.recovery_point = recovery_point
        self.flushed_offset = recovery_point
        self.last_flush_ms = context.clock.now_ms()
        self.closed = False
        self._must_take_back = False
        # Counts how often the end was taken back: a sync begun before says nothing about what came after.
        self.generation = 0
        # Since the last step of the recovery point: batches, and where in the active segment that was.
        self.unsynced_batches = 0
        self.unsynced_from = 0
        self.reader = LogReader(segments, producers, context.large_batches)
        self._listeners: list[Callable[[], None]] = []
        producers.on_high_watermark(log_end_offset)
        self.update_last_stable_offset()

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def leader_epoch(self) -> int:
        """The last epoch that wrote, -1 if none did."""
        return self.leader_epochs.latest

    @property
    def size(self) -> int:
        return self.segments.size()

    # --- appending

    def append(
        self,
        records: bytes | memoryview,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        leader_epoch: int = 0,
        verified: bool = True,
        supports_epoch_bump: bool = False,
        header: BatchHeader | None = None,
    ) -> AppendInfo:
        """Append the one batch in `records`; `header` is its header, if somebody has read it already.

        `verified`: the transaction coordinator knows that a transactional batch belongs to an open transaction.
        `supports_epoch_bump`: its producer speaks transaction version 2. Raises KafkaError, with `record_errors` if
        single records are to blame.
        """
        now = self.context.clock.now_ms()
        batch = validate(records, self.config, origin, now, header)
        header = batch.header
        size, limit = len(batch.data), self.config.segment_bytes
        if size > limit:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, segment.bytes is {limit}")
        if header.producer_id < 0:
            return self._write(batch, leader_epoch, now)
        duplicate = self.producers.check_batch(
            header,
            self.log_end_offset,
            client=origin is AppendOrigin.CLIENT,
            verified=verified,
            supports_epoch_bump=supports_epoch_bump,
        )
        if duplicate is not None:
            return AppendInfo(
                duplicate.first_offset,
                duplicate.last_offset,
                duplicate.timestamp,
                duplicate.timestamp,
                self.log_start_offset,
                duplicate=True,
                flush_needed=duplicate.last_offset >= self.high_watermark,
            )
        return self._write(batch, leader_epoch, now)

    def append_control(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        leader_epoch: int = 0,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append the marker that ends a producer's transaction. With transaction version 2 its epoch is a new one."""
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        now = self.context.clock.now_ms()
        records = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=now,
        )
        append_time = now if self.config.log_append_time else NO_TIMESTAMP
        batch = ValidBatch(parse_header(records), bytearray(records), now, append_time)
        return self._write(batch, leader_epoch, now, EndTxnMarker(commit, coordinator_epoch))

    def _write(self, batch: ValidBatch, leader_epoch: int, now: int, marker: EndTxnMarker | None = None) -> AppendInfo:
        if self._must_take_back:
            if not take_back_unflushed(self):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.partition} cannot be written")
            self._must_take_back = False
        header, data, max_timestamp, append_time = batch
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        config = self.config
        segment = self.segments.active
        try:
            if leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(leader_epoch, base_offset)
            if segment.should_roll(len(data), last_offset, max_timestamp, now, config):
                segment = self.roll()
            position = segment.size
            stamp(data, base_offset, leader_epoch)
            segment.append(data, last_offset, max_timestamp, config.index_interval_bytes)
            if marker is not None:
                self._apply_marker(segment, position, header, marker, base_offset, now)
        except OSError as error:
            raise self._storage_error(error) from error
        self.log_end_offset = log_end_offset = last_offset + 1
        if header.producer_id >= 0 and marker is None:
            self.producers.apply_batch(header, base_offset, max_timestamp, segment.base_offset, position)
        self.reader.note_append(base_offset, position)
        self.unsynced_batches += 1
        if self.unsynced_batches >= RECOVERY_BATCHES or segment.size - self.unsynced_from >= RECOVERY_BYTES:
            advance_recovery_point(self)
        flush_needed = log_end_offset - self.flushed_offset >= config.flush_messages
        if not flush_needed:
            self.set_high_watermark(log_end_offset)
        duplicate = False
        return AppendInfo(
            base_offset, last_offset, max_timestamp, append_time, self.log_start_offset, duplicate, flush_needed
        )

    def _apply_marker(
        self,
        segment: Segment,
        position: int,
        header: BatchHeader,
        marker: EndTxnMarker,
        offset: int,
        now: int,
    ) -> None:
        """The transaction index comes before the state: if it cannot be written, the marker is taken back."""
        producer_id = header.producer_id
        entry = self.producers.entries.get(producer_id)
        if not marker.commit and entry is not None and entry.txn_first_offset != NO_TRANSACTION:
            first_offset = entry.txn_first_offset
            stable = next((first for first in self.producers.ongoing if first != first_offset), offset + 1)
            try:
                segment.transaction_index.append(AbortedTransaction(producer_id, first_offset, offset, stable))
            except OSError:
                segment.take_back(position, offset)
                raise
        completed = self.producers.apply_marker(producer_id, header.producer_epoch, marker, offset, now)
        if completed is not None:
            self.producers.complete(completed)

    def _storage_error(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.partition}: {error}")

    def roll(self) -> Segment:
        """Close the active segment and begin a new one at the log end offset. Raises OSError, nothing changed then."""
        context = self.context
        old = self.segments.active
        base_offset = self.log_end_offset
        if old.base_offset == base_offset:
            return old
        old.seal()
        write_snapshot(self)
        jitter = self.config.segment_jitter_ms
        new = Segment.create(
            context.open_files,
            self.directory,
            base_offset,
            created_ms=context.clock.now_ms(),
            roll_jitter_ms=hash(self.directory) % jitter if jitter > 0 else 0,
        )
        self.segments.add(new)
        self.reader.forget()
        self.unsynced_batches = self.unsynced_from = 0
        sync_in_background(self, self.segments.between(min(self.recovery_point, old.base_offset), base_offset))
        return new

    # --- flushing

    def begin_flush(self) -> FlushPlan:
        """What to sync so that everything appended so far is durable."""
        return begin_flush(self)

    def end_flush(self, plan: FlushPlan, error: BaseException | None) -> None:
        """The plan was synced: what it covers is durable, and visible. If that failed, it is taken back."""
        if not isinstance(plan, LogFlush) or self.closed:
            return
        self.last_flush_ms = self.context.clock.now_ms()
        if error is not None:
            self._must_take_back = not take_back_unflushed(self)
            return
        # The recovery point stays: it vouches for the indexes too.
        self.flushed_offset = max(self.flushed_offset, plan.end_offset)
        if plan.end_offset > self.high_watermark:
            self.set_high_watermark(plan.end_offset)

    def flush(self) -> None:
        """Sync everything here and now. Blocks: for shutdown and for tests."""
        plan = self.begin_flush()
        try:
            plan.sync()
        except OSError as error:
            self.end_flush(plan, error)
            raise self._storage_error(error) from error
        self.end_flush(plan, None)

    # --- high watermark, last stable offset

    def subscribe(self, listener: Callable[[], None]) -> None:
        """`listener` is called whenever the high watermark or the last stable offset has moved, or the log is
        deleted."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self.producers.has_transactions:
            self.producers.on_high_watermark(offset)
            self.update_last_stable_offset()
        else:
            self.last_stable_offset = offset
        if self._listeners:
            self.wake_listeners()

    def wake_listeners(self) -> None:
        """Tell whoever waits for this log to look again: there is more to read, or the log is gone."""
        for listener in self._listeners.copy():
            listener()

    def update_last_stable_offset(self) -> None:
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            self.last_stable_offset = self.high_watermark
        else:
            self.last_stable_offset = min(max(unstable, self.log_start_offset), self.high_watermark)

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, isolation: Isolation = READ_UNCOMMITTED, min_one_message: bool = True
    ) -> FetchSlice:
        """The batches from the one that holds `offset` on, at most `max_bytes` and not beyond a segment's end.

        With `min_one_message` the first batch is whole even if it is longer. Raises OFFSET_OUT_OF_RANGE.
        """
        end_offset = self.log_end_offset
        if not self.holds(offset):
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{self.partition} has the offsets {self.log_start_offset} to {end_offset}, not {offset}",
            )
        committed = isolation is not READ_UNCOMMITTED
        upper = self.last_stable_offset if committed else self.high_watermark
        reader = self.reader
        file, position, length, incomplete = None, 0, 0, False
        aborted: list[tuple[int, int]] | None = [] if committed else None
        try:
            found = reader.find(offset) if offset < upper and (max_bytes > 0 or min_one_message) else None
            if found is not None:
                segment, position = found
                available = reader.end_position(segment, upper, end_offset) - position
                length, incomplete = reader.limit(segment, position, available, max_bytes, whole=min_one_message)
                if length > 0:
                    file = segment.file
                    if committed:
                        aborted = reader.aborted_in_slice(segment, position, length, offset, end_offset)
        except OSError as error:
            raise self._storage_error(error) from error
        return FetchSlice(
            self.high_watermark,
            self.last_stable_offset,
            self.log_start_offset,
            file,
            position,
            max(length, 0),
            aborted,
            incomplete,
        )

    def holds(self, offset: int) -> bool:
        """Whether a reader may be at `offset`."""
        return self.log_start_offset <= offset <= self.log_end_offset

    def readable_bytes(self, offset: int, isolation: Isolation = READ_UNCOMMITTED) -> int:
        """How many bytes a reader at `offset` has before it: what fetch.min.bytes is compared with."""
        upper = self.high_watermark if isolation is READ_UNCOMMITTED else self.last_stable_offset
        return self.bytes_between(offset, upper)

    def bytes_between(self, start: int, end: int) -> int:
        """The bytes of the batches from offset `start` to offset `end`; a look into the files only for old offsets."""
        if start >= end:
            return 0
        try:
            return self.reader.bytes_between(start, end, self.log_end_offset)
        except OSError as error:
            raise self._storage_error(error) from error

    def aborted_transactions(self, first_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [first offset, upper bound)."""
        return self.reader.aborted_in(first_offset, upper_bound)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest epoch not above `epoch` and its end offset, (-1, -1) if not known."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # --- producers

    def active_producers(self) -> list[ProducerEntry]:
        return list(self.producers.entries.values())

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self.producers.entries.get(producer_id)
        return entry is not None and entry.epoch == producer_epoch and entry.txn_first_offset != NO_TRANSACTION

    # --- life

    def update_config(self, config: LogConfig) -> None:
        self.config = config

    def delete_records(self, before_offset: int) -> int:
        """Move the log start offset up to `before_offset` (-1: the high watermark). Returns the log start offset."""
        if before_offset == -1:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log start offset of {self.topic}-{self.partition} cannot become {before_offset}, "
                f"the high watermark is {self.high_watermark}",
            )
        self.advance_log_start_offset(before_offset)
        return self.log_start_offset

    def advance_log_start_offset(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        try:
            self.leader_epochs.truncate_from_start(offset)
        except OSError as error:
            raise self._storage_error(error) from error
        self.log_start_offset = offset
        self.update_last_stable_offset()
        self.context.checkpoint_needed()

    def forget_positions(self) -> None:
        """Segments were replaced: remembered positions mean nothing any more."""
        self.reader.forget()
        self.producers.forget_positions()

    def close(self) -> None:
        """Leave the files so that the next start need not read the log: complete indexes, a snapshot."""
        if self.closed:
            return
        try:
            self.segments.active.seal()
            if self.log_end_offset > 0:
                write_snapshot(self)
            if self.context.sync_on_close:
                sync_all(self)
        except OSError as error:
            raise self._storage_error(error) from error
        finally:
            self.closed = True
            self.context.open_files.forget_under(self.directory)
        self.recovery_point = self.log_end_offset

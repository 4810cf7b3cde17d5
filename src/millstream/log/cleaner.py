"""Compaction of one log: keep the last record of every key, with its offset, and drop the rest.

In three parts, so that the event loop never waits: `plan_cleaning` on the loop's thread fixes what is to be done,
`CleaningPlan.run` in a worker reads closed segments (which do not change) and writes `.cleaned` ones, and
`CleaningPlan.apply` on the loop's thread puts these in the place of the old ones.

What is kept, as in Kafka: every record behind the part that the offset map covers; the last record of each key before;
tombstones and the markers of transactions without records until their delete horizon, which is set to now +
`delete.retention.ms` when compaction first meets them; nothing of aborted transactions. The batch with a producer's
last sequence stays as an empty batch when its records go, and so does the last batch of the cleaned part. Offsets never
change, the active segment and everything from the last stable offset on are never touched.
"""

import time
from collections import deque
from typing import NamedTuple

from millstream.log.config import LogConfig
from millstream.log.filesystem import FileSystem
from millstream.log.offset_map import DEFAULT_MEMORY_BYTES, OffsetMap
from millstream.log.open_files import OpenFiles
from millstream.log.partition_log import PartitionLog
from millstream.log.segment import MAX_RELATIVE_OFFSET, Segment
from millstream.log.segments import CLEANED_SUFFIX
from millstream.log.transaction_index import AbortedTransaction, TransactionIndex
from millstream.wire.batches import (
    BatchHeader,
    Record,
    build_batch,
    build_empty_batch,
    parse_header,
    read_marker,
    read_records,
)


class LastRecord(NamedTuple):
    """The last thing a producer wrote: its last batch of records, or (-1) only a marker of this epoch."""

    last_data_offset: int
    producer_epoch: int


class Group(NamedTuple):
    """Neighbouring segments that become one, with the sizes of the result's four files."""

    base_offset: int
    segment_count: int
    sizes: tuple[int, int, int, int]


class _Transactions:
    """Follows the transactions of a log, batch by batch, and says which batches nobody will ever see."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._aborted = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        # Producer id -> its aborted transaction, and whether a batch of it is still there.
        self._open_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._open_committed: set[int] = set()
        self.index: TransactionIndex | None = None

    def _advance(self, offset: int) -> None:
        while self._aborted and self._aborted[0].first_offset <= offset:
            transaction = self._aborted.popleft()
            self._open_aborted.setdefault(transaction.producer_id, (transaction, False))

    def on_batch(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        found = self._open_aborted.get(header.producer_id)
        if found is None:
            self._open_committed.add(header.producer_id)
            return False
        self._open_aborted[header.producer_id] = found[0], True
        return True

    def on_marker(self, header: BatchHeader, data: bytes, position: int) -> bool:
        """Whether the marker ends a transaction that has no records any more."""
        self._advance(header.last_offset)
        marker = read_marker(data, position, header)
        if marker is None:
            return header.record_count == 0
        if marker.commit:
            had_records = header.producer_id in self._open_committed
            self._open_committed.discard(header.producer_id)
            return not had_records
        found = self._open_aborted.pop(header.producer_id, None)
        if found is None or not found[1]:
            return True
        if self.index is not None:
            self.index.append(found[0])
        return False


class CleaningPlan:
    """What one cleaning of a log does. Made by `plan_cleaning`."""

    def __init__(
        self, log: PartitionLog, first_dirty_offset: int, first_uncleanable_offset: int, memory_bytes: int
    ) -> None:
        segments = log.segments.between(log.segments[0].base_offset, first_uncleanable_offset)
        self._log = log
        self._segments = segments
        self._config: LogConfig = log.config
        self._directory = log.directory
        self._now = log.context.clock.now_ms()
        self._first_dirty_offset = first_dirty_offset
        self._end_offset = first_uncleanable_offset
        self._aborted = log.aborted_transactions(segments[0].base_offset, first_uncleanable_offset)
        self._last_records = {
            entry.producer_id: LastRecord(entry.last_data_offset, entry.epoch) for entry in log.active_producers()
        }
        # The worker's own view of the closed segments: the log's files and indexes belong to the loop's thread.
        self._file_system: FileSystem = log.context.file_system
        self._open_files = OpenFiles(self._file_system, limit=4)
        self._sources = [
            Segment(
                self._open_files, self._directory, segment.base_offset, segment.file_sizes(), active=False, created_ms=0
            )
            for segment in segments
        ]
        self._map = OffsetMap(memory_bytes)
        self._cancelled = False
        self._groups: list[Group] = []
        self.cleaned_to = first_dirty_offset
        self.bytes_read = 0
        self.bytes_written = 0

    @property
    def log(self) -> PartitionLog:
        return self._log

    def cancel(self) -> None:
        """Stop `run` at the next batch (the log is being closed or deleted)."""
        self._cancelled = True

    # --- in the worker

    def run(self) -> None:
        """Write the compacted segments. Raises OSError; what was written then is removed."""
        try:
            self._build_map()
            self.cleaned_to = self._map.latest_offset + 1
            transactions = _Transactions(self._aborted)
            for group in self._group_by_size():
                self._groups.append(self._clean(group, transactions))
        except BaseException:
            self.discard()
            raise
        if self._cancelled:
            self.discard()

    def _build_map(self) -> None:
        """The last offset of every key in the dirty part, as far as the memory goes."""
        offsets = self._map
        transactions = _Transactions(self._aborted)
        first_dirty = self._first_dirty_offset
        offsets.latest_offset = first_dirty - 1
        for index, segment in enumerate(self._sources):
            following = self._sources[index + 1].base_offset if index + 1 < len(self._sources) else self._end_offset
            if following <= first_dirty:
                continue
            for _, chunk in segment.chunks(segment.offset_index.lookup(first_dirty)):
                position = 0
                while position < len(chunk):
                    if self._cancelled:
                        return
                    header = parse_header(chunk, position)
                    if header.is_control:
                        transactions.on_marker(header, chunk, position)
                    elif not transactions.on_batch(header):
                        for record in read_records(chunk, position, header):
                            if record.key is not None and record.offset >= first_dirty:
                                if offsets.is_full:
                                    return
                                offsets.put(record.key, record.offset)
                    offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
                    position += header.size_in_bytes
                    _give_way()
            offsets.latest_offset = max(offsets.latest_offset, following - 1)

    def _group_by_size(self) -> list[list[Segment]]:
        """Neighbours that fit into one segment together, of those that the map covers at least in part."""
        config = self._config
        groups: list[list[Segment]] = []
        log_size = index_size = time_index_size = 0
        sources = [segment for segment in self._sources if segment.base_offset < self.cleaned_to]
        for index, segment in enumerate(sources):
            end = sources[index + 1].base_offset if index + 1 < len(sources) else self._end_offset
            fits = (
                bool(groups)
                and log_size + segment.size <= config.segment_bytes
                and index_size + segment.offset_index.size <= config.segment_index_bytes
                and time_index_size + segment.time_index.size <= config.segment_index_bytes
                and end - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            )
            if not fits:
                groups.append([])
                log_size = index_size = time_index_size = 0
            groups[-1].append(segment)
            log_size += segment.size
            index_size += segment.offset_index.size
            time_index_size += segment.time_index.size
        return groups

    def _clean(self, group: list[Segment], transactions: _Transactions) -> Group:
        base_offset = group[0].base_offset
        cleaned = Segment.create(self._open_files, self._directory, base_offset, created_ms=0, suffix=CLEANED_SUFFIX)
        transactions.index = cleaned.transaction_index
        for segment in group:
            for _, chunk in segment.chunks():
                position = 0
                while position < len(chunk) and not self._cancelled:
                    header = parse_header(chunk, position)
                    size = header.size_in_bytes
                    kept = self._filter(chunk, position, header, transactions)
                    if kept is not None:
                        self._append(cleaned, kept)
                    position += size
                    self.bytes_read += size
                    _give_way()
        cleaned.seal()
        for file in cleaned.files_to_sync():
            file.sync()
        self._file_system.set_modified_ms(cleaned.log_path, group[-1].modified_ms())
        self._open_files.forget(cleaned.log_path)
        return Group(base_offset, len(group), cleaned.file_sizes())

    def _append(self, cleaned: Segment, batch: bytes) -> None:
        header = parse_header(batch)
        cleaned.append(batch, header.last_offset, header.max_timestamp, self._config.index_interval_bytes)
        self.bytes_written += len(batch)

    def _filter(self, data: bytes, position: int, header: BatchHeader, transactions: _Transactions) -> bytes | None:
        """The batch as it is to be kept; None if nothing of it is."""
        horizon = header.delete_horizon_ms
        if header.is_control:
            without_records = transactions.on_marker(header, data, position)
            discard = without_records and horizon is not None and horizon <= self._now
        else:
            without_records = False
            discard = transactions.on_batch(header)
        keep_empty = self._is_last_of_producer(header) or header.next_offset == self._end_offset
        if discard:
            return build_empty_batch(header) if keep_empty else None
        records = read_records(data, position, header)
        retained = records if header.is_control else [r for r in records if self._keeps(r, horizon)]
        if not retained:
            return build_empty_batch(header) if keep_empty else None
        needs_horizon = horizon is None and (without_records or any(record.value is None for record in retained))
        if len(retained) == len(records) and not needs_horizon:
            return data[position : position + header.size_in_bytes]
        return build_batch(
            retained,
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            compression=header.compression,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
            log_append_time=header.max_timestamp if header.timestamp_type else None,
            delete_horizon_ms=self._now + self._config.delete_retention_ms if needs_horizon else horizon,
        )

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _keeps(self, record: Record, horizon: int | None) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None or record.offset < self._map.get(record.key):
            return False
        return record.value is not None or horizon is None or self._now < horizon

    def discard(self) -> None:
        """Remove what was written."""
        self._groups.clear()
        for source in self._sources:
            for path in source.paths():
                self._file_system.remove(path + CLEANED_SUFFIX)

    # --- on the loop's thread

    def apply(self) -> bool:
        """Put the compacted segments into the log. False if the log changed underneath: then nothing happens."""
        log = self._log
        start = 0
        if self._cancelled or log.closed or any(segment not in log.segments for segment in self._segments):
            self.discard()
            return False
        for group in self._groups:
            old = self._segments[start : start + group.segment_count]
            start += group.segment_count
            cleaned = Segment(
                log.context.open_files,
                self._directory,
                group.base_offset,
                group.sizes,
                active=False,
                created_ms=self._now,
                suffix=CLEANED_SUFFIX,
            )
            log.segments.replace(old, cleaned, self._now + self._config.file_delete_delay_ms)
        log.forget_positions()
        return True


def _give_way() -> None:
    """Let the event loop's thread run: this thread would otherwise hold the interpreter for its whole time slice."""
    time.sleep(0)


def plan_cleaning(
    log: PartitionLog,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> CleaningPlan | None:
    """A plan to clean the log up to, not including, `first_uncleanable_offset`; None if there is no closed segment."""
    if first_uncleanable_offset <= log.segments[0].base_offset:
        return None
    return CleaningPlan(log, first_dirty_offset, first_uncleanable_offset, memory_bytes)

"""Which log is to be compacted next, and seeing it through.

The dirty part of a log begins where the last cleaning ended (the cleaner checkpoint) and ends before the active
segment, before the last stable offset, and before the first segment with a record younger than `min.compaction.lag.ms`.
A log is due when the dirty share of its bytes is above `min.cleanable.dirty.ratio`, or when a dirty record is older
than `max.compaction.lag.ms`. The log with the greatest share comes first; one log is cleaned at a time, in a worker of
its own.
"""

from typing import NamedTuple

from millstream.log.cleaner import CleaningPlan, plan_cleaning
from millstream.log.flush import InlineWorker, Worker
from millstream.log.manager import LogManager
from millstream.log.offset_map import DEFAULT_MEMORY_BYTES
from millstream.log.partition_log import PartitionLog
from millstream.wire.errors import KafkaError


class Dirt(NamedTuple):
    """How much of a log there is to clean."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def measure(log: PartitionLog, checkpoint: int | None, now: int) -> Dirt:
    """The dirty part of a log whose last cleaning ended at `checkpoint`."""
    config = log.config
    first_dirty = log.log_start_offset
    if checkpoint is not None and log.log_start_offset <= checkpoint <= log.log_end_offset:
        first_dirty = checkpoint
    active = log.segments.active.base_offset
    uncleanable = min(log.last_stable_offset, active)
    dirty = [segment for segment in log.segments.between(first_dirty, active) if segment.base_offset < active]
    if config.min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp > now - config.min_compaction_lag_ms:
                uncleanable = min(uncleanable, segment.base_offset)
                break
    uncleanable = max(first_dirty, uncleanable)
    # Only whole segments are cleaned: the one that holds the first uncleanable offset stays.
    end = max((segment.base_offset for segment in log.segments if segment.base_offset <= uncleanable), default=0)
    clean_bytes = sum(segment.size for segment in log.segments if segment.base_offset < first_dirty)
    cleanable = [segment for segment in dirty if segment.base_offset < end]
    overdue = any(
        0 < segment.first_timestamp < now - config.max_compaction_lag_ms for segment in cleanable if segment.size
    )
    return Dirt(first_dirty, end, clean_bytes, sum(segment.size for segment in cleanable), overdue)


class LogCleaner:
    def __init__(
        self, manager: LogManager, worker: Worker | None = None, memory_bytes: int = DEFAULT_MEMORY_BYTES
    ) -> None:
        self._manager = manager
        self._worker: Worker = InlineWorker() if worker is None else worker
        self.memory_bytes = memory_bytes
        self._running: CleaningPlan | None = None
        self.last_error: BaseException | None = None
        self.cleaned_logs = 0

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def step(self) -> bool:
        """Begin to clean the log that needs it most, if one does and none is under way. For log.cleaner.backoff.ms."""
        if self._running is not None:
            return False
        found = self._filthiest()
        if found is None:
            return False
        key, log, dirt = found
        plan = plan_cleaning(log, dirt.first_dirty_offset, dirt.first_uncleanable_offset, self.memory_bytes)
        if plan is None:
            return False
        self._running = plan

        def done(error: BaseException | None) -> None:
            self._running = None
            self.last_error = error
            if error is not None:
                return
            try:
                applied = plan.apply()
            except OSError as failure:
                self.last_error = failure
                return
            if applied:
                self.cleaned_logs += 1
                self._manager.cleaner_offsets[key] = plan.cleaned_to
                self._manager.checkpoint()

        self._worker.submit(plan.run, done)
        return True

    def _filthiest(self) -> tuple[tuple[str, int], PartitionLog, Dirt] | None:
        now = self._manager.clock.now_ms()
        best: tuple[tuple[str, int], PartitionLog, Dirt] | None = None
        for key, log in self._manager.logs.items():
            if not log.config.compact:
                continue
            try:
                dirt = measure(log, self._manager.cleaner_offsets.get(key), now)
            except (OSError, KafkaError):
                continue
            due = dirt.ratio > log.config.min_cleanable_dirty_ratio or dirt.overdue
            if dirt.cleanable_bytes and due and (best is None or dirt.ratio > best[2].ratio):
                best = key, log, dirt
        return best

    def stop(self) -> None:
        """Give up the cleaning that is under way; its files are removed."""
        if self._running is not None:
            self._running.cancel()

"""The log against a simple model: whatever happens to it, a reader sees what the model says.

The model is a list of batches. Every rule does the same to both and compares; the invariants read the whole log, as a
consumer of either isolation would. Faults: a full disk, an I/O error, a power failure that takes what was not synced.
"""

import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from log.faulty_filesystem import io_error
from log.harness import Harness, records_of
from millstream.log import segment
from millstream.log.cleaner import plan_cleaning
from millstream.log.config import LogConfig
from millstream.log.durability import advance_recovery_point
from millstream.log.fetch import READ_COMMITTED
from millstream.log.log_cleaner import measure
from millstream.log.retention import delete_old_segments
from millstream.wire.batches import Record, build_batch
from millstream.wire.compression import Compression
from millstream.wire.errors import ErrorCode, KafkaError


class Batch(NamedTuple):
    base_offset: int
    records: list[Record]
    producer_id: int = -1
    base_sequence: int = -1
    transactional: bool = False
    # A marker has no records; it ended the producer's transaction this way.
    marker: bool | None = None

    @property
    def next_offset(self) -> int:
        return self.base_offset + max(len(self.records), 1)


class LogMachine(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from((400, 1500, 100_000)),
        interval=st.sampled_from((0, 150, 4096)),
        compact=st.booleans(),
        roomy=st.booleans(),
    )
    def start(self, segment_bytes: int, interval: int, compact: bool, roomy: bool) -> None:
        self.folder = tempfile.mkdtemp(prefix="millstream-log-")
        self.roomy = roomy
        self.patch = pytest.MonkeyPatch()
        if roomy:
            self.patch.setattr(segment, "ROOM_FROM", 0)
            self.patch.setattr(segment, "ROOM", 512)
        self.compact = compact
        policy = frozenset(("compact", "delete")) if compact else frozenset(("delete",))
        config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            cleanup_policy=policy,
            retention_ms=-1,
            retention_bytes=-1,
            file_delete_delay_ms=0,
        )
        self.harness = Harness(Path(self.folder), config)
        self.batches: list[Batch] = []
        self.start_offset = 0
        self.durable_offset = 0
        self.cleaned_to = 0
        self.sequences: dict[int, int] = {}
        self.open: dict[int, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)
            self.patch.undo()

    # --- the model

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    def aborted(self) -> set[int]:
        """The base offsets of the batches whose transaction was aborted."""
        found: set[int] = set()
        pending: dict[int, list[int]] = {}
        for entry in self.batches:
            if entry.marker is not None:
                mine = pending.pop(entry.producer_id, [])
                if not entry.marker:
                    found.update(mine)
            elif entry.transactional:
                pending.setdefault(entry.producer_id, []).append(entry.base_offset)
        return found

    def expected(self, *, committed: bool) -> list[Record]:
        stable = min(self.open.values(), default=self.end_offset)
        hidden = self.aborted() if committed else set()
        return [
            record
            for entry in self.batches
            if entry.base_offset not in hidden
            for record in entry.records
            if record.offset >= self.start_offset and (not committed or record.offset < stable)
        ]

    def forget_producers(self) -> None:
        """After a crash: what the producers did is what is in the log."""
        self.sequences = {}
        self.open = {}
        for entry in self.batches:
            if entry.marker is not None:
                self.open.pop(entry.producer_id, None)
            elif entry.producer_id >= 0:
                self.sequences[entry.producer_id] = entry.base_sequence + len(entry.records)
                if entry.transactional:
                    self.open.setdefault(entry.producer_id, entry.base_offset)

    # --- rules

    keys = st.lists(st.tuples(st.sampled_from((b"a", b"b", b"c")), st.booleans()), min_size=1, max_size=4)

    def build(
        self, keys: list[tuple[bytes, bool]], codec: Compression, **options: int | bool
    ) -> tuple[bytes, list[Record]]:
        self.harness.clock.now += 10
        now, end = self.harness.clock.now, self.end_offset
        records = [
            Record(index, now, key, None if tombstone else b"%d" % (end + index))
            for index, (key, tombstone) in enumerate(keys)
        ]
        data = build_batch(records, compression=codec, **options)  # type: ignore[arg-type]  # a test's shorthand
        return data, [record._replace(offset=end + record.offset) for record in records]

    @rule(keys=keys, codec=st.sampled_from(Compression))
    def append(self, keys: list[tuple[bytes, bool]], codec: Compression) -> None:
        data, records = self.build(keys, codec)
        info = self.harness.log.append(data)
        assert (info.base_offset, info.last_offset) == (self.end_offset, records[-1].offset)
        self.batches.append(Batch(info.base_offset, records))

    @rule(keys=keys, producer=st.integers(0, 2), transactional=st.booleans())
    def append_with_sequence(self, keys: list[tuple[bytes, bool]], producer: int, transactional: bool) -> None:
        transactional = transactional or producer in self.open
        sequence = self.sequences.get(producer, 0)
        options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        data, records = self.build(keys, Compression.NONE, transactional=transactional, **options)
        end = self.end_offset
        assert self.harness.log.append(data).base_offset == end
        self.batches.append(Batch(end, records, producer, sequence, transactional))
        self.sequences[producer] = sequence + len(records)
        if transactional:
            self.open.setdefault(producer, end)
        again = self.harness.log.append(data)
        assert again.duplicate
        assert again.base_offset == end
        gap, _ = self.build(keys, Compression.NONE, transactional=transactional, **{**options, "base_sequence": 900})
        with pytest.raises(KafkaError) as refused:
            self.harness.log.append(gap)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @precondition(lambda self: self.open)
    @rule(commit=st.booleans(), chance=st.randoms(use_true_random=False))
    def end_transaction(self, commit: bool, chance: random.Random) -> None:
        producer = chance.choice(sorted(self.open))
        end = self.end_offset
        self.harness.log.append_control(producer_id=producer, producer_epoch=0, commit=commit, coordinator_epoch=0)
        self.batches.append(Batch(end, [], producer, marker=commit))
        del self.open[producer]

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()
        self.durable_offset = self.harness.log.recovery_point

    @rule()
    def advance_recovery_point(self) -> None:
        advance_recovery_point(self.harness.log)
        assert self.harness.log.recovery_point == self.end_offset
        self.durable_offset = self.end_offset

    @rule()
    def flush(self) -> None:
        self.harness.log.flush()
        self.durable_offset = self.end_offset

    @rule(chance=st.randoms(use_true_random=False))
    def delete_records(self, chance: random.Random) -> None:
        offset = chance.randint(self.start_offset, self.harness.log.high_watermark)
        assert self.harness.log.delete_records(offset) == offset
        self.start_offset = offset

    @rule()
    def retain(self) -> None:
        log = self.harness.log
        before = log.log_start_offset
        delete_old_segments(log, self.harness.clock.now)
        assert log.log_start_offset == before
        assert log.segments[0].base_offset <= before

    @precondition(lambda self: not self.compact)
    @rule(size=st.integers(0, 2000))
    def retain_by_size(self, size: int) -> None:
        log = self.harness.log
        log.update_config(replace(log.config, retention_bytes=size))
        delete_old_segments(log, self.harness.clock.now)
        log.update_config(replace(log.config, retention_bytes=-1))
        assert log.size <= size or len(log.segments) == 1 or log.size - log.segments[0].size < size
        self.start_offset = log.log_start_offset

    @precondition(lambda self: self.compact)
    @rule(memory=st.sampled_from((1, 320, 1 << 20)))
    def clean(self, memory: int) -> None:
        log = self.harness.log
        dirt = measure(log, self.cleaned_to, self.harness.clock.now)
        plan = plan_cleaning(log, dirt.first_dirty_offset, dirt.first_uncleanable_offset, memory)
        if plan is None:
            return
        plan.run()
        assert plan.apply()
        self.cleaned_to = plan.cleaned_to
        assert dirt.first_dirty_offset <= plan.cleaned_to <= max(dirt.first_uncleanable_offset, dirt.first_dirty_offset)

    @rule()
    def restart(self) -> None:
        recovered = self.harness.reopen()
        assert recovered.truncated_bytes == 0
        self.durable_offset = self.end_offset

    @rule()
    def kill(self) -> None:
        assert self.harness.reopen(clean=False).truncated_bytes == 0

    @rule(chance=st.randoms(use_true_random=False))
    def power_failure(self, chance: random.Random) -> None:
        point = self.harness.log.recovery_point
        self.harness.file_system.crash(chance)
        log = self.harness.open(recovery_point=point, log_start_offset=self.start_offset).log
        assert log.log_end_offset >= max(self.durable_offset, self.start_offset)
        self.batches = [entry for entry in self.batches if entry.next_offset <= log.log_end_offset]
        if log.log_end_offset == self.start_offset and not log.producers.entries:
            # Nothing that may be read is left: if records below were lost, the log began anew at its start offset.
            self.batches = []
        self.cleaned_to = min(self.cleaned_to, self.end_offset)
        self.forget_producers()

    @rule(keys=keys, room=st.integers(0, 120))
    def append_to_a_full_disk(self, keys: list[tuple[bytes, bool]], room: int) -> None:
        data, records = self.build(keys, Compression.NONE)
        self.harness.file_system.room = min(room, len(data) - 1)
        code = ErrorCode.NONE
        try:
            info = self.harness.log.append(data)
            self.batches.append(Batch(info.base_offset, records))
        except KafkaError as error:
            code = error.code
        assert code is ErrorCode.KAFKA_STORAGE_ERROR or (self.roomy and code is ErrorCode.NONE)
        self.harness.file_system.heal()

    @rule(keys=keys, operations=st.sampled_from((("write",), ("write", "truncate"))))
    def append_with_io_error(self, keys: list[tuple[bytes, bool]], operations: tuple[str, ...]) -> None:
        data, _ = self.build(keys, Compression.NONE)
        self.harness.file_system.fail = lambda operation, _: io_error() if operation in operations else None
        with pytest.raises(KafkaError) as refused:
            self.harness.log.append(data)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        self.harness.file_system.heal()

    # --- what must always be true

    @invariant()
    def offsets_are_those_of_the_model(self) -> None:
        log = self.harness.log
        assert log.log_start_offset == self.start_offset
        assert log.log_end_offset == log.high_watermark == self.end_offset
        stable = min(self.open.values(), default=self.end_offset)
        assert log.last_stable_offset == max(min(stable, self.end_offset), self.start_offset)

    @invariant()
    def readers_see_what_the_model_says(self) -> None:
        log = self.harness.log
        for committed in (False, True):
            seen = records_of(log, READ_COMMITTED) if committed else records_of(log)
            expected = self.expected(committed=committed)
            if not self.compact:
                assert seen == expected
                continue
            by_offset = {record.offset: record for record in expected}
            assert all(by_offset[record.offset] == record for record in seen)
            if committed:
                self.last_values_are_there(seen, expected)

    def last_values_are_there(self, seen: list[Record], expected: list[Record]) -> None:
        def latest(records: list[Record]) -> dict[bytes | None, bytes]:
            values = {record.key: record.value for record in records}
            return {key: value for key, value in values.items() if value is not None}

        assert latest(seen) == latest(expected)
        assert [r for r in seen if r.offset >= self.cleaned_to] == [r for r in expected if r.offset >= self.cleaned_to]


TestLog = LogMachine.TestCase
TestLog.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

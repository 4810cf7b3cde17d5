"""Compaction: what stays, what goes, when, and that a fault or a crash in the middle of it costs nothing."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from log.faulty_filesystem import io_error
from log.harness import START_MS, Harness, batch, keyed, records_of
from millstream.log.cleaner import CleaningPlan, plan_cleaning
from millstream.log.config import LogConfig
from millstream.log.fetch import READ_COMMITTED
from millstream.log.log_cleaner import LogCleaner, measure
from millstream.log.manager import LogManager
from millstream.wire.batches import BatchHeader, Record, build_batch
from millstream.wire.compression import Compression

COMPACT = LogConfig(cleanup_policy=frozenset(("compact",)), delete_retention_ms=1000, file_delete_delay_ms=0)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path, COMPACT)


def put(harness: Harness, *pairs: tuple[bytes, bytes | None], codec: Compression = Compression.NONE) -> None:
    harness.log.append(keyed(*pairs, now=harness.clock.now, codec=codec))


def plan(harness: Harness, checkpoint: int = 0, memory: int = 1 << 20) -> CleaningPlan:
    dirt = measure(harness.log, checkpoint, harness.clock.now)
    made = plan_cleaning(harness.log, dirt.first_dirty_offset, dirt.first_uncleanable_offset, memory)
    assert made is not None
    return made


def clean(harness: Harness, checkpoint: int = 0, memory: int = 1 << 20) -> int:
    harness.log.roll()
    made = plan(harness, checkpoint, memory)
    made.run()
    assert made.apply()
    return made.cleaned_to


def headers(harness: Harness) -> list[BatchHeader]:
    return [header for segment in harness.log.segments for _, header in segment.scan()]


def content(harness: Harness) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(harness.log)]


@pytest.mark.parametrize("codec", Compression)
def test_the_last_record_of_a_key_stays_where_it_is(harness: Harness, codec: Compression) -> None:
    put(harness, (b"a", b"1"), (b"b", b"1"), codec=codec)
    put(harness, (b"a", b"2"), (b"c", b"1"), (b"a", b"3"), codec=codec)
    assert clean(harness) == 5
    assert content(harness) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3")]
    assert {header.compression for header in headers(harness)} == {codec}
    assert harness.log.log_end_offset == 5
    harness.reopen()
    assert content(harness) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3")]


def test_the_active_segment_is_left_alone(harness: Harness) -> None:
    put(harness, (b"a", b"1"))
    harness.log.roll()
    put(harness, (b"a", b"2"))
    put(harness, (b"a", b"3"))
    made = plan(harness)
    made.run()
    made.apply()
    assert content(harness) == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")]


def test_small_segments_become_one(harness: Harness) -> None:
    for n in range(5):
        put(harness, (b"%d" % n, b"v"))
        harness.log.roll()
    clean(harness)
    assert [segment.base_offset for segment in harness.log.segments] == [0, 5]
    assert len(content(harness)) == 5
    assert not list(Path(harness.directory).glob("*.cleaned")) + list(Path(harness.directory).glob("*.swap"))


def test_a_tombstone_stays_until_its_horizon(harness: Harness) -> None:
    put(harness, (b"a", b"1"), (b"b", b"1"))
    put(harness, (b"a", None))
    put(harness, (b"z", b"1"))
    done = clean(harness)
    assert content(harness) == [(1, b"b", b"1"), (2, b"a", None), (3, b"z", b"1")]
    assert [header.delete_horizon_ms for header in headers(harness)] == [None, START_MS + 1000, None]
    harness.clock.now += 999
    put(harness, (b"y", b"1"))
    done = clean(harness, done)
    assert (2, b"a", None) in content(harness)
    harness.clock.now += 1
    put(harness, (b"x", b"1"))
    clean(harness, done)
    assert [key for _, key, _ in content(harness)] == [b"b", b"z", b"y", b"x"]


def test_aborted_records_go_and_markers_follow(harness: Harness) -> None:
    log = harness.log
    for producer, commit in ((1, True), (2, False)):
        record = Record(0, START_MS, b"k%d" % producer, b"v")
        log.append(build_batch([record], producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True))
        log.append_control(producer_id=producer, producer_epoch=0, commit=commit, coordinator_epoch=0)
    put(harness, (b"z", b"1"))
    done = clean(harness)
    assert content(harness) == [(0, b"k1", b"v"), (4, b"z", b"1")]
    assert [header.is_control for header in headers(harness)] == [False, True, False, True, False]
    assert [header.record_count for header in headers(harness)] == [1, 1, 0, 1, 1]
    assert records_of(log, READ_COMMITTED) == records_of(log)
    log.producers.expire(harness.clock.now + 10**9)
    for key in (b"k1", b"x", b"y"):
        # The empty batches go, then the markers get a horizon, then it is over.
        assert [header.base_offset for header in headers(harness) if header.is_control] == [1, 3]
        put(harness, (key, b"new"))
        done = clean(harness, done)
        harness.clock.now += 10_000
    assert [header.base_offset for header in headers(harness) if header.is_control] == []
    assert [offset for offset, _, _ in content(harness)] == [4, 5, 6, 7]


def test_a_producer_s_last_sequence_outlives_its_records(harness: Harness) -> None:
    for sequence in range(3):
        record = Record(0, START_MS, b"same", b"%d" % sequence)
        harness.log.append(build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence))
    put(harness, (b"same", b"last"))
    put(harness, (b"z", b"1"))
    clean(harness)
    kept = [header for header in headers(harness) if header.producer_id == 7]
    assert [(header.base_sequence, header.record_count) for header in kept] == [(2, 0)]
    for path in Path(harness.directory).glob("*.snapshot"):
        path.unlink()
    harness.open(recovery_point=0)
    assert harness.log.producers.entries[7].last_sequence == 2


def test_an_open_transaction_holds_compaction_back(harness: Harness) -> None:
    put(harness, (b"a", b"1"))
    put(harness, (b"a", b"2"))
    harness.log.roll()
    harness.log.append(batch(b"v", key=b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    harness.log.roll()
    put(harness, (b"a", b"3"))
    harness.log.roll()
    assert measure(harness.log, 0, harness.clock.now).first_uncleanable_offset == 2
    made = plan(harness)
    made.run()
    assert made.apply()
    assert [offset for offset, _, _ in content(harness)] == [1, 2, 3]


def test_a_small_map_goes_on_where_it_was_full(harness: Harness) -> None:
    for n in range(20):
        put(harness, (b"%02d" % (n % 10), b"%d" % n))
    done = clean(harness, memory=160 * 4)
    assert done == 4
    rounds = 1
    while done < 20:
        following = clean(harness, done, memory=160 * 4)
        assert following > done
        done = following
        rounds += 1
    assert rounds == 5
    assert [value for _, _, value in content(harness)] == [b"%d" % n for n in range(10, 20)]


def test_long_keys_are_told_apart(harness: Harness) -> None:
    put(harness, (b"k" * 50 + b"1", b"1"), (b"k" * 50 + b"2", b"2"), (b"k" * 50 + b"1", b"3"))
    clean(harness)
    assert [value for _, _, value in content(harness)] == [b"2", b"3"]


@pytest.mark.parametrize("operation", ["write", "sync", "open"])
def test_a_fault_leaves_the_log_and_no_files(harness: Harness, operation: str) -> None:
    put(harness, (b"a", b"1"))
    put(harness, (b"a", b"2"))
    harness.log.roll()
    before = content(harness)
    made = plan(harness)
    harness.file_system.fail = lambda asked, path: io_error() if asked == operation and "cleaned" in path else None
    with pytest.raises(OSError, match="Input/output"):
        made.run()
    harness.file_system.heal()
    assert content(harness) == before
    assert not list(Path(harness.directory).glob("*.cleaned"))


def test_every_rename_can_be_the_last_before_a_crash(tmp_path: Path) -> None:
    expected = None
    for crash_at in range(20):
        harness = Harness(tmp_path / str(crash_at), COMPACT)
        for n in range(12):
            put(harness, (b"%d" % (n % 3), b"%d" % n))
            if n % 4 == 3:
                harness.log.roll()
        made = plan(harness)
        made.run()
        renames = 0

        def fail(operation: str, _: str, limit: int = crash_at) -> OSError | None:
            nonlocal renames
            renames += operation == "rename"
            return io_error() if operation == "rename" and renames > limit else None

        harness.file_system.fail = fail
        finished = True
        try:
            made.apply()
        except OSError:
            finished = False
        harness.file_system.heal()
        harness.open(recovery_point=12)
        values = [value for _, _, value in content(harness)]
        assert values[-3:] == [b"9", b"10", b"11"]
        assert harness.log.log_end_offset == 12
        assert not [path for path in Path(harness.directory).iterdir() if path.suffix in (".swap", ".cleaned")]
        if finished:
            expected = values
            break
    assert expected == [b"9", b"10", b"11"]
    assert crash_at > 5


def test_segments_deleted_meanwhile_are_not_brought_back(harness: Harness) -> None:
    put(harness, (b"a", b"1"))
    harness.log.roll()
    put(harness, (b"b", b"1"))
    harness.log.roll()
    made = plan(harness)
    made.run()
    harness.log.advance_log_start_offset(1)
    harness.log.segments.delete([harness.log.segments[0]], 0)
    assert not made.apply()
    assert content(harness) == [(1, b"b", b"1")]
    assert not list(Path(harness.directory).glob("*.cleaned"))


def test_a_cancelled_cleaning_leaves_nothing(harness: Harness) -> None:
    put(harness, (b"a", b"1"), (b"a", b"2"))
    harness.log.roll()
    made = plan(harness)
    made.cancel()
    made.run()
    assert not made.apply()
    assert len(content(harness)) == 2
    assert not list(Path(harness.directory).glob("*.cleaned"))


def test_reading_goes_on_after_the_swap(harness: Harness) -> None:
    put(harness, (b"a", b"1"))
    put(harness, (b"a", b"2"))
    old = harness.log.read(0, 100_000)
    before = old.read_all()
    clean(harness)
    assert old.read_all() == before
    assert len(harness.log.read(0, 100_000).read_all()) < len(before)


def test_lags_and_ratio_decide_which_log_is_cleaned(tmp_path: Path) -> None:
    clock = Harness(tmp_path / "clock").clock
    manager = LogManager(str(tmp_path / "data"), clock=clock)
    manager.open(lambda _: COMPACT)
    config = replace(COMPACT, min_cleanable_dirty_ratio=0.6, min_compaction_lag_ms=500, max_compaction_lag_ms=5000)
    log = manager.create("topic", 0, uuid4(), config)
    plain = manager.create("plain", 0, uuid4(), LogConfig())
    cleaner = LogCleaner(manager)
    for target in (log, plain):
        for n in range(4):
            target.append(keyed((b"a", b"%d" % n), now=clock.now))
        target.roll()
    assert not cleaner.step()  # too young
    clock.now += 501
    assert cleaner.step()
    assert cleaner.last_error is None
    assert manager.cleaner_offsets == {("topic", 0): 4}
    assert [record.value for record in records_of(log)] == [b"3"]
    assert len(records_of(plain)) == 4
    assert not cleaner.step()  # clean
    log.append(keyed((b"a", b"x"), now=clock.now))
    log.roll()
    clock.now += 600
    assert measure(log, 4, clock.now).ratio == 0.5
    assert not cleaner.step()  # not dirty enough
    clock.now += 5000
    assert cleaner.step()  # but too old by now
    assert [record.value for record in records_of(log)] == [b"x"]
    manager.close()
    again = LogManager(str(tmp_path / "data"), clock=clock)
    again.open(lambda _: config)
    assert again.cleaner_offsets == {("topic", 0): 5}
    again.close()

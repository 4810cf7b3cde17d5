"""Reading with limits, rolling, positions, DeleteRecords, and what an I/O error leaves behind."""

from pathlib import Path

import pytest

from log.faulty_filesystem import io_error, no_space
from log.harness import START_MS, Harness, ManualWorker, batch, records_of
from millstream.log.config import LogConfig
from millstream.log.fetch import READ_COMMITTED, READ_UNCOMMITTED
from millstream.wire.batches import iterate_headers
from millstream.wire.errors import ErrorCode, KafkaError

SIZE = len(batch(b"v" * 100))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path)
    for _ in range(10):
        harness.append(b"v" * 100)
    return harness


def code_of(harness: Harness, offset: int) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        harness.log.read(offset, 1000)
    return error.value.code


def test_a_read_gives_what_fits_and_cuts_the_last_batch(harness: Harness) -> None:
    assert len(harness.log.read(0, SIZE * 3).read_all()) == SIZE * 3
    part = harness.log.read(4, SIZE * 2 + 50)
    assert part.length == SIZE * 2 + 50
    assert [header.base_offset for _, header in iterate_headers(part.read_all())] == [4, 5]
    assert part.read(SIZE, 12) == part.read_all()[SIZE : SIZE + 12]
    assert part.read(part.length - 1, 100) == part.read_all()[-1:]


def test_large_batches_are_not_cut_and_the_reader_goes_on_behind_them(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    large = b"v" * 300_000
    size = len(batch(large))
    for value in (large, large, large, b"small", large, large):
        harness.append(value)
    small = len(batch(b"small"))

    def whole(offset: int, limit: int) -> list[int]:
        found = harness.log.read(offset, limit)
        data = found.read_all()
        headers = [header for _, header in iterate_headers(data)]
        assert sum(header.size_in_bytes for header in headers) == found.length == len(data)
        return [header.base_offset for header in headers]

    assert whole(0, 2 * size + 1000) == [0, 1]
    assert whole(2, size + small) == [2, 3]
    assert whole(0, 2 * size) == [0, 1]
    assert whole(0, size) == [0]
    assert whole(1, size - 1) == [1]  # one message at least
    cut = harness.log.read(3, small + 10)  # among small ones it is cut, as Apache Kafka does it
    assert cut.length == small + 10
    assert whole(4, 10 * size) == [4, 5]


def test_the_first_batch_is_whole_if_one_message_is_wanted(harness: Harness) -> None:
    assert harness.log.read(2, 1, min_one_message=True).length == SIZE
    assert harness.log.read(2, 0, min_one_message=True).length == SIZE
    cut = harness.log.read(2, 20, min_one_message=False)
    assert (cut.length, cut.first_entry_incomplete) == (20, True)
    assert harness.log.read(2, 0, min_one_message=False).length == 0
    assert not harness.log.read(2, SIZE, min_one_message=False).first_entry_incomplete


def test_reading_at_the_end_and_beyond(harness: Harness) -> None:
    end = harness.log.read(10, 1000)
    assert (end.length, end.read_all(), end.high_watermark) == (0, b"", 10)
    assert code_of(harness, 11) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(harness, -1) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_delete_records(harness: Harness) -> None:
    assert harness.log.delete_records(4) == 4
    assert code_of(harness, 3) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.log.delete_records(2) == 4
    for wrong in (11, -2):
        with pytest.raises(KafkaError) as error:
            harness.log.delete_records(wrong)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.log.delete_records(-1) == 10
    assert harness.checkpoints == 2


def test_an_offset_inside_a_batch_gives_the_batch(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.append(b"a", b"b", b"c")
    harness.append(b"d", b"e")
    assert [header.base_offset for _, header in iterate_headers(harness.log.read(1, 1000).read_all())] == [0, 3]
    assert [header.base_offset for _, header in iterate_headers(harness.log.read(4, 1000).read_all())] == [3]


def test_segments_are_rolled_by_size_and_read_one_at_a_time(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(segment_bytes=SIZE * 4))
    for _ in range(10):
        harness.append(b"v" * 100)
    assert [segment.base_offset for segment in harness.log.segments] == [0, 4, 8]
    assert harness.log.read(2, 100_000).length == SIZE * 2
    assert harness.log.recovery_point == 8
    assert harness.log.bytes_between(2, 9) == SIZE * 7
    assert harness.log.readable_bytes(0) == SIZE * 10
    assert harness.log.readable_bytes(10) == 0


def test_segments_are_rolled_by_time(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(segment_ms=1000))
    for _ in range(5):
        harness.append(b"v")
        harness.clock.now += 600
    assert [segment.base_offset for segment in harness.log.segments] == [0, 2, 4]


def test_segments_are_rolled_when_an_index_is_full(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(segment_index_bytes=24, index_interval_bytes=0))
    for _ in range(10):
        harness.append(b"v" * 100)
        harness.clock.now += 1
    assert len(harness.log.segments) > 2
    assert all(segment.time_index.size <= 36 for segment in harness.log.segments)
    assert len(records_of(harness.log)) == 10


def test_read_committed_stops_at_the_last_stable_offset(harness: Harness) -> None:
    log = harness.log
    log.append(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    harness.append(b"behind")
    assert log.last_stable_offset == 10
    assert log.read(0, 100_000, isolation=READ_COMMITTED).length == SIZE * 10
    assert log.read(10, 100_000, isolation=READ_COMMITTED).length == 0
    assert log.readable_bytes(0, READ_COMMITTED) == SIZE * 10
    assert log.readable_bytes(0, READ_UNCOMMITTED) == log.size
    log.append_control(producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0)
    part = log.read(0, 100_000, isolation=READ_COMMITTED)
    assert part.aborted == [(1, 10)]
    assert log.read(0, 100_000).aborted is None
    assert log.read(12, 100_000, isolation=READ_COMMITTED).aborted == [(1, 10)]


def test_listeners_hear_of_every_move(harness: Harness) -> None:
    seen: list[int] = []

    def listener() -> None:
        seen.append(harness.log.high_watermark)

    harness.log.subscribe(listener)
    harness.append(b"x")
    harness.append(b"x", b"y")
    harness.log.unsubscribe(listener)
    harness.append(b"x")
    assert seen == [11, 13]


def test_a_slice_outlives_its_segment(harness: Harness) -> None:
    part = harness.log.read(0, SIZE)
    before = part.read_all()
    harness.log.roll()
    harness.log.segments.delete([harness.log.segments[0]], 0)
    harness.context.open_files.forget_under(harness.directory)
    for path in harness.log.segments.due_removals(0):
        harness.file_system.remove(path)
    assert part.read_all() == before


def test_open_files_are_bounded(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(segment_bytes=SIZE))
    for _ in range(30):
        harness.append(b"v" * 100)
    assert len(records_of(harness.log)) == 30
    assert len(harness.context.open_files) <= 8


@pytest.mark.parametrize("room", [0, 10, 70])
def test_a_full_disk_costs_only_the_append(harness: Harness, room: int) -> None:
    harness.file_system.room = room
    with pytest.raises(KafkaError) as error:
        harness.append(b"v" * 100)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert Path(harness.log.segments.active.log_path).stat().st_size == SIZE * 10
    harness.file_system.heal()
    assert harness.append(b"v" * 100) == 10
    assert len(records_of(harness.log)) == 11


def test_a_tail_that_could_not_be_cut_is_cut_by_the_next_append(harness: Harness) -> None:
    harness.file_system.room = 50
    harness.file_system.fail = lambda operation, _: io_error() if operation == "truncate" else None
    with pytest.raises(KafkaError):
        harness.append(b"v" * 100)
    path = Path(harness.log.segments.active.log_path)
    assert path.stat().st_size == SIZE * 10 + 50
    harness.file_system.heal()
    assert harness.append(b"") == 10
    assert path.stat().st_size == harness.log.segments.active.size
    assert len(records_of(harness.reopen(clean=False).log)) == 11


def test_a_roll_that_fails_changes_nothing(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(segment_bytes=SIZE * 2, index_interval_bytes=0))
    for _ in range(2):
        harness.append(b"v" * 100)
    harness.file_system.fail = lambda operation, path: no_space() if operation == "open" and "02.log" in path else None
    with pytest.raises(KafkaError):
        harness.append(b"v" * 100)
    harness.file_system.heal()
    assert harness.append(b"v" * 100) == 2
    assert [segment.base_offset for segment in harness.log.segments] == [0, 2]
    assert len(records_of(harness.log)) == 3


def test_a_marker_whose_index_entry_fails_is_taken_back(harness: Harness) -> None:
    log = harness.log
    log.append(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    harness.file_system.fail = lambda _, path: no_space() if path.endswith("txnindex") else None
    with pytest.raises(KafkaError):
        log.append_control(producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0)
    assert (log.log_end_offset, log.last_stable_offset) == (11, 10)
    harness.file_system.heal()
    log.append_control(producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0)
    assert log.last_stable_offset == 12
    assert [entry.first_offset for entry in log.aborted_transactions(0, 12)] == [10]


def test_a_read_that_fails_is_a_storage_error(harness: Harness) -> None:
    harness.file_system.fail = lambda operation, _: io_error() if operation == "read" else None
    with pytest.raises(KafkaError) as error:
        harness.log.read(5, 10)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_recovery_point_moves_when_the_worker_is_done(tmp_path: Path) -> None:
    worker = ManualWorker()
    harness = Harness(tmp_path, LogConfig(segment_bytes=SIZE), worker=worker)
    for _ in range(3):
        harness.append(b"v" * 100)
    assert harness.log.recovery_point == 0
    worker.run()
    assert harness.log.recovery_point == 2
    assert harness.checkpoints == 2


def test_a_log_that_was_never_used_has_nothing_open(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    assert harness.log.read(0, 100).length == 0
    assert len(harness.context.open_files) == 0
    harness.reopen()
    assert len(harness.context.open_files) == 0
    assert harness.log.log_end_offset == 0
    assert harness.clock.now == START_MS

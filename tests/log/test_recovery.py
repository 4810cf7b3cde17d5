"""Opening logs in every state a stop or a crash can leave."""

import random
from pathlib import Path

import pytest

from log.harness import START_MS, Harness, batch, keyed, records_of
from millstream.log.config import LogConfig
from millstream.log.durability import advance_recovery_point
from millstream.log.fetch import READ_COMMITTED
from millstream.log.retention import delete_old_segments
from millstream.log.segment import ROOM, ROOM_FROM
from millstream.wire.batches import Record, build_batch
from millstream.wire.errors import KafkaError


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path, LogConfig(segment_bytes=2000, index_interval_bytes=200))


def fill(harness: Harness, count: int = 60) -> list[bytes | None]:
    values: list[bytes | None] = [b"value-%03d" % n for n in range(count)]
    for value in values:
        harness.append(value)
    return values


def test_a_clean_start_reads_only_the_tail(harness: Harness) -> None:
    values = fill(harness)
    recovered = harness.reopen()
    assert recovered.scanned_bytes < 1000
    assert recovered.log.log_end_offset == 60
    assert [record.value for record in records_of(recovered.log)] == values


def test_after_kill_only_the_segments_behind_the_recovery_point_are_read(harness: Harness) -> None:
    values = fill(harness)
    assert len(harness.log.segments) > 2
    active = harness.log.segments.active
    assert harness.log.recovery_point == active.base_offset
    recovered = harness.reopen(clean=False)
    assert recovered.scanned_bytes == active.size
    assert [record.value for record in records_of(recovered.log)] == values


def test_indexes_after_recovery_are_those_written_before(harness: Harness) -> None:
    fill(harness)
    active = harness.log.segments.active
    before = [active.offset_index.entry(n) for n in range(active.offset_index.count)]
    recovered = harness.reopen(clean=False)
    after = recovered.log.segments.active.offset_index
    assert before
    assert [after.entry(n) for n in range(after.count)] == before


@pytest.mark.parametrize("cut", [1, 30, 61, 70])
def test_a_torn_tail_is_cut(harness: Harness, cut: int) -> None:
    values = fill(harness, 5)
    path = Path(harness.log.segments.active.log_path)
    path.write_bytes(path.read_bytes()[:-cut])
    recovered = harness.reopen(clean=False)
    assert recovered.log.log_end_offset == 4
    assert recovered.truncated_bytes > 0
    assert path.stat().st_size == recovered.log.segments.active.size
    assert [record.value for record in records_of(recovered.log)] == values[:4]
    assert harness.append(b"next") == 4


def test_a_broken_batch_cuts_the_log_there_and_drops_the_segments_behind(harness: Harness) -> None:
    fill(harness)
    first = harness.log.segments[0]
    data = bytearray(Path(first.log_path).read_bytes())
    data[-1] ^= 0xFF
    Path(first.log_path).write_bytes(data)
    recovered = harness.open(clean=False, recovery_point=0)
    assert len(recovered.log.segments) == 1
    assert recovered.log.log_end_offset == len(records_of(recovered.log)) < 60
    assert not [path for path in Path(harness.directory).glob("*.log") if int(path.stem) > 0]


def test_garbage_behind_the_last_batch_is_cut(harness: Harness) -> None:
    fill(harness, 3)
    path = Path(harness.log.segments.active.log_path)
    path.write_bytes(path.read_bytes() + b"\x00" * 200)
    assert harness.reopen(clean=False).truncated_bytes == 200
    assert harness.log.log_end_offset == 3


def test_missing_and_half_written_indexes_are_rebuilt(harness: Harness) -> None:
    values = fill(harness)
    harness.log.close()
    for path in Path(harness.directory).glob("*.timeindex"):
        path.unlink()
    first = Path(harness.directory) / f"{0:020d}.index"
    first.write_bytes(first.read_bytes()[:-3])
    recovered = harness.open(clean=True, recovery_point=60)
    assert [record.value for record in records_of(recovered.log, max_bytes=300)] == values
    assert recovered.log.segments[0].max_timestamp == harness.clock.now


def test_producers_and_open_transactions_survive_every_kind_of_stop(harness: Harness) -> None:
    log = harness.log
    for sequence in range(30):
        log.append(batch(b"x" * 50, producer_id=1, producer_epoch=0, base_sequence=sequence))
    log.append(batch(b"open", producer_id=2, producer_epoch=3, base_sequence=0, transactional=True))
    fill(harness, 30)
    for clean in (True, False):
        log = harness.reopen(clean=clean).log
        assert log.last_stable_offset == 30
        assert log.has_ongoing_transaction(2, 3)
        again = log.append(batch(b"x" * 50, producer_id=1, producer_epoch=0, base_sequence=29))
        assert again.duplicate
        assert again.base_offset == 29
    log.append_control(producer_id=2, producer_epoch=3, commit=False, coordinator_epoch=0)
    assert harness.reopen(clean=False).log.last_stable_offset == 62
    values = [record.value for record in records_of(harness.log, READ_COMMITTED)]
    assert b"open" not in values
    assert len(values) == 60


def test_a_broken_snapshot_is_passed_over(harness: Harness) -> None:
    for sequence in range(40):
        harness.log.append(batch(b"x" * 50, producer_id=1, producer_epoch=0, base_sequence=sequence))
    snapshots = sorted(Path(harness.directory).glob("*.snapshot"))
    assert len(snapshots) > 1
    for path in snapshots:
        path.write_bytes(b"\x00" + path.read_bytes()[1:-1])
    log = harness.reopen(clean=False).log
    assert log.producers.entries[1].last_sequence == 39
    assert len(log.producers.entries[1].batches) == 5


def test_snapshots_ahead_of_the_log_are_removed(harness: Harness) -> None:
    fill(harness, 3)
    ahead = Path(harness.directory) / f"{99:020d}.snapshot"
    ahead.write_bytes(harness.log.producers.encode())
    harness.reopen(clean=False)
    assert not ahead.exists()


def test_an_empty_log_starts_at_the_log_start_offset(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    for path in Path(harness.directory).iterdir():
        path.unlink()
    log = harness.open(log_start_offset=42).log
    assert (log.log_start_offset, log.log_end_offset) == (42, 42)
    assert harness.append(b"x") == 42


def test_a_log_that_lost_its_records_below_the_start_begins_anew(harness: Harness) -> None:
    fill(harness, 3)
    log = harness.open(clean=False, recovery_point=0, log_start_offset=50).log
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_leftovers_are_removed(harness: Harness) -> None:
    fill(harness, 3)
    names = [f"{0:020d}.log.cleaned", f"{9:020d}.log.deleted", f"{9:020d}.index", f"{5:020d}.index.swap", "x.tmp"]
    for name in names:
        (Path(harness.directory) / name).write_bytes(b"left over")
    harness.reopen(clean=False)
    assert harness.log.log_end_offset == 3
    assert not [name for name in names if (Path(harness.directory) / name).exists()]


@pytest.mark.parametrize("old_is_gone", [False, True])
def test_a_swap_that_was_broken_off_is_completed(harness: Harness, old_is_gone: bool) -> None:
    harness.log.append(keyed((b"a", b"1"), (b"a", b"2")))
    harness.log.close()
    log_file = Path(harness.log.segments.active.log_path)
    compacted = build_batch(records_of(harness.log)[1:], base_offset=0, leader_epoch=0)
    log_file.with_name(log_file.name + ".swap").write_bytes(compacted)
    if old_is_gone:
        log_file.unlink()
    log = harness.open(clean=True, recovery_point=2).log
    assert [record.value for record in records_of(log)] == [b"2"]
    assert log.log_end_offset == 2
    assert log.segments.active.offset_index.count == 0


def test_leader_epochs_are_taken_from_the_batches(harness: Harness) -> None:
    for epoch in (1, 1, 4):
        harness.log.append(batch(b"x"), leader_epoch=epoch)
    (Path(harness.directory) / "leader-epoch-checkpoint").unlink()
    log = harness.reopen(clean=False).log
    assert log.leader_epochs.entries == [(1, 0), (4, 2)]
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert log.end_offset_for_epoch(4) == (4, 3)
    assert log.end_offset_for_epoch(5) == (-1, -1)


def test_a_recovery_point_inside_the_active_segment(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(index_interval_bytes=200))
    values = fill(harness, 50)
    harness.log.append(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    advance_recovery_point(harness.log)
    values += [b"t", *fill(harness, 5)]
    log = harness.log
    assert log.recovery_point == 51
    entries = [log.segments.active.offset_index.entry(n) for n in range(log.segments.active.offset_index.count)]
    recovered = harness.reopen(clean=False)
    assert recovered.scanned_bytes < log.size / 4
    assert [record.value for record in records_of(recovered.log)] == values
    assert recovered.log.last_stable_offset == 50
    assert recovered.log.segments.active.max_timestamp == harness.clock.now
    index = recovered.log.segments.active.offset_index
    assert [index.entry(n) for n in range(index.count)][: len(entries) - 2] == entries[: len(entries) - 2]
    advance_recovery_point(recovered.log)
    snapshots = [path.name for path in Path(harness.directory).glob("*.snapshot")]
    assert snapshots == [f"{56:020d}.snapshot"]


def test_a_recovery_point_that_leads_nowhere_means_to_read_the_segment(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    values = fill(harness, 10)
    recovered = harness.open(recovery_point=7)
    assert recovered.scanned_bytes >= harness.log.size
    assert [record.value for record in records_of(harness.log)] == values
    Path(harness.log.segments.active.log_path).write_bytes(b"")
    assert harness.open(recovery_point=7).log.log_end_offset == 0


def test_the_recovery_point_moves_with_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.log.partition_log.RECOVERY_BATCHES", 10)
    harness = Harness(tmp_path)
    fill(harness, 25)
    assert harness.log.recovery_point == 20
    monkeypatch.setattr("millstream.log.partition_log.RECOVERY_BATCHES", 1000)
    monkeypatch.setattr("millstream.log.partition_log.RECOVERY_BYTES", 500)
    fill(harness, 10)
    assert 25 < harness.log.recovery_point <= 35


def test_a_synced_snapshot_is_not_written_over_by_closing(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(retention_bytes=0, file_delete_delay_ms=0))
    harness.log.append(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    fill(harness, 3)
    delete_old_segments(harness.log, harness.clock.now)  # the records go, the open transaction is in the snapshot
    harness.reopen()
    harness.file_system.crash(random.Random(1))
    log = harness.open(recovery_point=4, log_start_offset=4).log
    assert log.has_ongoing_transaction(1, 0)


@pytest.mark.parametrize("junk", [b"\xff" * 24, b"\x00" * 24, b"\x00\x00\x00\x01" * 6])
def test_junk_behind_what_was_synced_of_the_indexes(tmp_path: Path, junk: bytes) -> None:
    harness = Harness(tmp_path, LogConfig(index_interval_bytes=100))
    harness.log.append(batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    harness.log.append_control(producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0)
    fill(harness, 30)
    advance_recovery_point(harness.log)
    fill(harness, 3)
    folder = Path(harness.directory)
    for suffix in (".index", ".timeindex", ".txnindex"):
        path = folder / f"{0:020d}{suffix}"
        path.write_bytes(path.read_bytes() + junk * 17)
    recovered = harness.reopen(clean=False)
    assert recovered.scanned_bytes < recovered.log.size / 4
    assert [entry.first_offset for entry in recovered.log.aborted_transactions(0, 99)] == [0]
    assert len(records_of(recovered.log, READ_COMMITTED, max_bytes=200)) == 33
    assert recovered.log.segments.active.max_timestamp == harness.clock.now


def batch_of(size: int) -> bytes:
    return build_batch([Record(0, START_MS, None, bytes(size))])


def file_size(harness: Harness) -> int:
    return Path(harness.log.segments.active.log_path).stat().st_size


@pytest.fixture
def roomy(tmp_path: Path) -> Harness:
    """A log that has just got room: one large batch, one small one."""
    harness = Harness(tmp_path, LogConfig(max_message_bytes=2 * ROOM_FROM))
    harness.log.append(batch_of(ROOM_FROM))
    assert file_size(harness) == harness.log.size
    harness.log.append(batch_of(10))
    return harness


def test_small_batches_get_room_that_goes_with_the_segment(roomy: Harness) -> None:
    log = roomy.log
    assert file_size(roomy) == (log.size // ROOM + 1) * ROOM
    for _ in range(3):
        log.append(batch_of(ROOM // 10))
    assert file_size(roomy) == (log.size // ROOM + 1) * ROOM
    path, size = Path(log.segments.active.log_path), log.size
    log.roll()
    assert path.stat().st_size == size


def test_large_batches_make_their_own_room(roomy: Harness) -> None:
    roomy.log.append(batch_of(2 * ROOM))
    assert file_size(roomy) == roomy.log.size


def test_room_is_cut_off_after_a_kill_and_nothing_was_lost(roomy: Harness) -> None:
    size = roomy.log.size
    recovered = roomy.reopen(clean=False)
    assert (recovered.log.log_end_offset, recovered.truncated_bytes) == (2, 0)
    assert file_size(roomy) == recovered.log.size == size


def test_room_is_cut_off_by_a_clean_stop(roomy: Harness) -> None:
    size = roomy.log.size
    roomy.reopen(clean=True)
    assert (roomy.log.log_end_offset, file_size(roomy), roomy.log.size) == (2, size, size)


def test_room_in_a_rolled_segment_does_not_cost_the_segments_behind(roomy: Harness) -> None:
    """Power failed, and the cut of the older segment had not reached the disk."""
    path = Path(roomy.log.segments.active.log_path)
    roomy.log.roll()
    roomy.log.append(batch_of(10))
    with path.open("ab") as file:
        file.write(bytes(1000))
    recovered = roomy.open()
    assert (recovered.log.log_end_offset, recovered.truncated_bytes, len(recovered.log.segments)) == (3, 0, 2)


def test_zeros_in_place_of_records_end_the_log(roomy: Harness) -> None:
    path = Path(roomy.log.segments.active.log_path)
    size = roomy.log.size
    roomy.log.append(batch_of(100))
    roomy.log.roll()
    roomy.log.append(batch_of(10))
    with path.open("r+b") as file:
        file.seek(size)
        file.write(bytes(path.stat().st_size - size))
    recovered = roomy.open()
    assert (recovered.log.log_end_offset, len(recovered.log.segments)) == (2, 1)


def test_without_room_on_the_disk_batches_still_come_in(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(max_message_bytes=2 * ROOM_FROM))
    harness.log.append(batch_of(ROOM_FROM))
    harness.file_system.room = 1000
    for _ in range(3):
        harness.log.append(batch_of(100))
    assert file_size(harness) - ROOM_FROM < 2000
    with pytest.raises(KafkaError):
        harness.log.append(batch_of(1000))
    harness.file_system.heal()
    assert harness.reopen(clean=False).log.log_end_offset == 4

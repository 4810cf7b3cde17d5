"""Which segments are deleted, when, and when their files go."""

from pathlib import Path

from log.harness import Harness, batch, records_of
from millstream.log.config import LogConfig
from millstream.log.retention import delete_old_segments

SIZE = len(batch(b"v" * 100, key=b"k"))


def filled(tmp_path: Path, **config: int | frozenset[str]) -> Harness:
    settings = {"segment_bytes": SIZE * 2, "retention_ms": -1, **config}
    harness = Harness(tmp_path, LogConfig(**settings))  # type: ignore[arg-type]  # a test's shorthand
    for _ in range(8):
        harness.append(b"v" * 100, key=b"k")
        harness.clock.now += 100
    return harness


def test_by_size(tmp_path: Path) -> None:
    harness = filled(tmp_path, retention_bytes=SIZE * 5)
    assert delete_old_segments(harness.log, harness.clock.now) == 1
    assert harness.log.log_start_offset == 2
    assert harness.log.size == SIZE * 6
    assert delete_old_segments(harness.log, harness.clock.now) == 0


def test_by_time(tmp_path: Path) -> None:
    harness = filled(tmp_path, retention_ms=450)
    assert delete_old_segments(harness.log, harness.clock.now) == 2
    assert [record.offset for record in records_of(harness.log)] == [4, 5, 6, 7]


def test_all_of_it(tmp_path: Path) -> None:
    harness = filled(tmp_path, retention_ms=450)
    harness.clock.now += 100_000
    assert delete_old_segments(harness.log, harness.clock.now) == 4
    assert (harness.log.log_start_offset, harness.log.log_end_offset, harness.log.size) == (8, 8, 0)
    assert harness.append(b"v") == 8
    assert delete_old_segments(harness.log, harness.clock.now) == 0
    harness.reopen()
    assert (harness.log.log_start_offset, harness.log.log_end_offset) == (8, 9)


def test_before_the_log_start_offset_even_if_compacted(tmp_path: Path) -> None:
    harness = filled(tmp_path, cleanup_policy=frozenset(("compact",)), retention_bytes=0)
    assert delete_old_segments(harness.log, harness.clock.now) == 0
    harness.log.delete_records(5)
    assert delete_old_segments(harness.log, harness.clock.now) == 2
    assert harness.log.log_start_offset == 5
    assert [record.offset for record in records_of(harness.log)] == [5, 6, 7]


def test_files_go_after_their_delay(tmp_path: Path) -> None:
    harness = filled(tmp_path, retention_bytes=SIZE * 5, file_delete_delay_ms=60)
    delete_old_segments(harness.log, harness.clock.now)
    folder = Path(harness.directory)
    assert sorted(path.name[18:] for path in folder.glob("*.deleted")) == [
        "00.index.deleted",
        "00.log.deleted",
        "00.timeindex.deleted",
    ]
    assert harness.log.segments.due_removals(harness.clock.now + 59) == []
    due = harness.log.segments.due_removals(harness.clock.now + 60)
    assert {Path(path).name for path in due} >= {path.name for path in folder.glob("*.deleted")}
    assert harness.log.segments.due_removals(harness.clock.now + 60) == []


def test_records_not_yet_visible_are_never_deleted(tmp_path: Path) -> None:
    harness = filled(tmp_path, retention_bytes=0, flush_messages=1)
    assert harness.log.high_watermark == 6  # what the rolled segments hold was synced with them
    assert delete_old_segments(harness.log, harness.clock.now) == 3
    assert harness.log.log_start_offset == 6

"""The data folder: opening it, its lock, its checkpoints, deleted logs."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from log.harness import ManualClock, ManualWorker, batch, records_of
from millstream.log.config import LogConfig
from millstream.log.manager import DataFolderLockedError, LogManager
from millstream.wire.errors import ErrorCode, KafkaError

SMALL = LogConfig(segment_bytes=500)


def opened(root: Path, clock: ManualClock | None = None, *, sync: bool = True) -> LogManager:
    manager = LogManager(str(root), clock=clock or ManualClock(), sync=sync)
    manager.open(lambda _: SMALL)
    return manager


def test_logs_are_there_again(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    ids = {n: uuid4() for n in range(3)}
    for n, topic_id in ids.items():
        log = manager.create("a.topic-with-1", n, topic_id, SMALL)
        for _ in range(n * 5):
            log.append(batch(b"v" * 100))
    manager.create("a.topic-with-1", 2, UUID(int=0), SMALL).delete_records(3)
    manager.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    again = opened(tmp_path)
    assert again.was_clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert {key: log.log_end_offset for key, log in again.logs.items()} == {
        ("a.topic-with-1", n): n * 5 for n in range(3)
    }
    assert [again.logs["a.topic-with-1", n].topic_id for n in range(3)] == list(ids.values())
    assert again.logs["a.topic-with-1", 2].log_start_offset == 3
    again.close()


def test_after_a_kill_only_the_tail_is_read(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create("t", 0, uuid4(), SMALL)
    for _ in range(50):
        log.append(batch(b"v" * 100))
    manager.release()
    again = opened(tmp_path)
    assert not again.was_clean
    assert again.scanned_bytes == log.segments.active.size
    assert again.truncated_bytes == 0
    assert len(records_of(again.logs["t", 0])) == 50
    again.close()


def test_a_folder_belongs_to_one(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.create("t", 0, uuid4(), SMALL).append(batch(b"v"))
    with pytest.raises(DataFolderLockedError, match="in use"):
        opened(tmp_path)
    assert first.logs["t", 0].append(batch(b"v")).base_offset == 1
    first.close()
    opened(tmp_path).close()


def test_a_deleted_log_s_name_is_free_at_once_and_its_files_go_later(tmp_path: Path) -> None:
    clock = ManualClock()
    manager = opened(tmp_path, clock)
    manager.create("t", 0, uuid4(), SMALL).append(batch(b"old"))
    manager.delete("t", 0)
    manager.delete("t", 0)
    assert manager.get("t", 0) is None
    assert manager.create("t", 0, uuid4(), SMALL).log_end_offset == 0
    deleted = list(tmp_path.glob("t-0.*-delete"))
    assert len(deleted) == 1
    manager.remove_deleted()
    assert deleted[0].exists()
    clock.now += 60_000
    manager.remove_deleted()
    assert not deleted[0].exists()
    manager.close()


def test_deleted_folders_and_strangers_at_the_start(tmp_path: Path) -> None:
    for name in ("t-0.0123456789abcdef0123456789abcdef-delete", "lost+found", "t-1"):
        (tmp_path / name).mkdir(parents=True)
    manager = LogManager(str(tmp_path))
    manager.open(lambda _: SMALL, keep=lambda topic, partition, _: (topic, partition) != ("t", 1))
    manager.remove_deleted()
    assert manager.logs == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "lost+found"]
    manager.close()


def test_the_identity_is_made_once(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    first = manager.identity(node_id=1, cluster_id=lambda: "the-cluster")
    assert first["cluster.id"] == "the-cluster"
    assert manager.identity(node_id=1, cluster_id=lambda: "another") == first
    manager.close()


def test_upkeep(tmp_path: Path) -> None:
    clock = ManualClock()
    manager = opened(tmp_path, clock)
    config = replace(SMALL, retention_ms=1000, flush_ms=500, file_delete_delay_ms=0)
    log = manager.create("t", 0, uuid4(), config)
    for sequence in range(10):
        log.append(batch(b"v" * 100, producer_id=1, producer_epoch=0, base_sequence=sequence))
    manager.flush_due()
    assert log.flushed_offset < 10
    clock.now += 500
    manager.flush_due()
    assert log.flushed_offset == 10
    clock.now += 86_400_000
    assert manager.expire_producers() == 1
    assert manager.retain() == 5
    assert log.log_start_offset == 10
    manager.remove_deleted()
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 10\n"
    manager.close()


def test_checkpoints_are_written_one_at_a_time(tmp_path: Path) -> None:
    worker = ManualWorker()
    manager = LogManager(str(tmp_path), worker=worker)
    manager.open(lambda _: SMALL)
    for _ in range(5):
        manager.checkpoint()
    assert len(worker.queue) == 1
    worker.run()
    assert len(worker.queue) == 1
    worker.run()
    assert len(worker.queue) == 0
    manager.close()


def test_checkpoints_that_make_no_sense_cost_only_time(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create("t", 0, uuid4(), SMALL)
    for _ in range(20):
        log.append(batch(b"v" * 100))
    manager.release()
    for path in tmp_path.glob("*-checkpoint"):
        path.write_bytes(b"0\nnonsense\xff")
    again = opened(tmp_path)
    assert again.logs["t", 0].log_end_offset == 20
    assert again.scanned_bytes == log.size
    again.close()


def test_a_log_that_cannot_be_made(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    (tmp_path / "t-0").write_text("a file is in the way")
    with pytest.raises(KafkaError) as refused:
        manager.create("t", 0, uuid4(), SMALL)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    manager.close()


def test_a_folder_to_be_thrown_away_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = opened(tmp_path, sync=False)
    manager.create("t", 0, uuid4(), SMALL).append(batch(b"v"))
    monkeypatch.setattr("os.fsync", lambda _: pytest.fail("fsync"))
    monkeypatch.setattr("millstream.log.filesystem._sync_data", lambda _: pytest.fail("fdatasync"))
    manager._write_checkpoints(manager._checkpoint_files())
    manager.get("t", 0).close()  # type: ignore[union-attr]  # it was made three lines above
    assert (tmp_path / "recovery-point-offset-checkpoint").exists()
    manager.release()


def test_what_another_topic_of_the_same_name_left_behind_is_not_found_again(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.create("t", 0, uuid4(), SMALL).append(batch(b"old"))
    first.close()
    manager = LogManager(str(tmp_path), clock=ManualClock())
    manager.lock()
    assert manager.create("t", 0, uuid4(), SMALL).log_end_offset == 0
    manager.close()


def test_whoever_waits_for_a_log_is_woken_when_it_is_deleted(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create("t", 0, uuid4(), SMALL)
    seen: list[bool] = []
    log.subscribe(lambda: seen.append(log.closed))
    manager.delete("t", 0)
    assert seen == [True]
    manager.close()

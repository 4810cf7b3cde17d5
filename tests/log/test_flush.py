"""Group commit: what waits, what is visible, what an fsync that fails takes back."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from log.faulty_filesystem import io_error
from log.harness import Harness, ManualWorker, batch, records_of
from millstream.log.config import LogConfig
from millstream.log.flush import GroupCommit, InlineWorker, ThreadWorker
from millstream.wire.errors import ErrorCode, KafkaError


class Answers(list[KafkaError | None]):
    def __call__(self, error: KafkaError | None) -> None:
        self.append(error)


@pytest.fixture
def worker() -> ManualWorker:
    return ManualWorker()


@pytest.fixture
def harness(tmp_path: Path, worker: ManualWorker) -> Harness:
    return Harness(tmp_path, LogConfig(flush_messages=1), worker=worker)


def test_many_acknowledgements_share_one_fsync(harness: Harness, worker: ManualWorker) -> None:
    commit, answers = GroupCommit(worker), Answers()
    for _ in range(3):
        assert harness.log.append(batch(b"v")).flush_needed
        commit.request(harness.log, answers)
    assert harness.log.high_watermark == 0
    assert harness.log.read(0, 1000).length == 0
    worker.run()  # the first round holds the first request, the others gathered meanwhile
    assert (len(answers), harness.log.high_watermark) == (1, 1)
    worker.run()
    assert (list(answers), harness.log.high_watermark) == ([None] * 3, 3)
    assert len(harness.file_system.syncs) == 2
    assert len(records_of(harness.log)) == 3


def test_without_a_threshold_everything_is_visible_at_once(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    assert not harness.log.append(batch(b"v")).flush_needed
    assert harness.log.high_watermark == 1
    assert harness.file_system.syncs == []


def test_only_every_so_many_records_are_flushed(tmp_path: Path) -> None:
    harness = Harness(tmp_path, LogConfig(flush_messages=3))
    assert [harness.log.append(batch(b"v")).flush_needed for _ in range(3)] == [False, False, True]
    assert harness.log.high_watermark == 2
    harness.log.flush()
    assert harness.log.high_watermark == 3
    assert not harness.log.append(batch(b"v")).flush_needed


def test_a_duplicate_of_an_unflushed_batch_waits_too(harness: Harness) -> None:
    data = batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0)
    harness.log.append(data)
    again = harness.log.append(data)
    assert again.duplicate
    assert again.flush_needed
    harness.log.flush()
    assert not harness.log.append(data).flush_needed


@pytest.mark.parametrize("segments", [1, 3])
def test_an_fsync_that_fails_takes_the_records_back(harness: Harness, worker: ManualWorker, segments: int) -> None:
    commit, answers = GroupCommit(worker), Answers()
    harness.append(b"durable", producer_id=1, producer_epoch=0, base_sequence=0)
    harness.log.flush()
    for n in range(segments):
        harness.append(b"lost %d" % n, producer_id=1, producer_epoch=0, base_sequence=1 + n)
        commit.request(harness.log, answers)
        if n + 1 < segments:
            harness.log.roll()
    rounds, worker.queue = worker.queue, [item for item in worker.queue if item[0].__name__ == "sync"]
    harness.file_system.fail = lambda operation, _: io_error() if operation == "sync" else None
    worker.run()
    assert len(rounds) >= 1
    assert [answer and answer.code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * segments
    harness.file_system.heal()
    log = harness.log
    assert (log.log_end_offset, log.high_watermark) == (1, 1)
    assert log.producers.entries[1].last_sequence == 0
    assert not [path for path in Path(harness.directory).glob("*.snapshot") if int(path.stem) > 1]
    assert harness.append(b"again", producer_id=1, producer_epoch=0, base_sequence=1) == 1
    log.flush()
    assert [record.value for record in records_of(log)] == [b"durable", b"again"]
    assert [record.value for record in records_of(harness.reopen(clean=False).log)] == [b"durable", b"again"]


def test_a_log_that_cannot_take_back_takes_nothing(harness: Harness) -> None:
    harness.append(b"one")
    harness.file_system.fail = lambda operation, _: io_error() if operation in ("sync", "truncate") else None
    with pytest.raises(KafkaError):
        harness.log.flush()
    with pytest.raises(KafkaError) as refused:
        harness.append(b"two")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    harness.file_system.heal()
    assert harness.append(b"three") == 0


def test_a_thread_does_the_work_and_calls_back() -> None:
    finished = threading.Event()
    calls: list[Callable[[], None]] = []

    def call_soon(callback: Callable[[], None]) -> None:
        calls.append(callback)
        if len(calls) == 2:
            finished.set()

    results: list[BaseException | None] = []
    threads: list[str] = []

    def fail() -> None:
        raise OSError("disk")

    worker = ThreadWorker(call_soon, "log-test")
    worker.submit(lambda: threads.append(threading.current_thread().name), results.append)
    worker.submit(fail, results.append)
    assert finished.wait(10)
    worker.close()
    assert results == []
    for call in calls:
        call()
    assert threads == ["log-test"]
    assert results[0] is None
    assert isinstance(results[1], OSError)


def test_a_thread_ends_when_the_loop_is_gone() -> None:
    def call_soon(_: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    worker = ThreadWorker(call_soon)
    done: list[BaseException | None] = []
    worker.submit(lambda: None, done.append)
    worker.close()
    assert done == []


def test_inline_work_reports_its_error() -> None:
    results: list[BaseException | None] = []
    InlineWorker().submit(lambda: None, results.append)
    assert results == [None]

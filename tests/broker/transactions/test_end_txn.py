from functools import partial

import pytest

from millstream.broker.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from millstream.broker.transactions.states import TransactionState
from millstream.wire.errors import ErrorCode, KafkaError
from support.transactions import Harness, Marker, error_of

A, B = ("a", 0), ("b", 3)
LAST = 32_766
FINE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE


@pytest.fixture
def harness() -> Harness:
    return Harness()


def _next(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    return producer._replace(producer_epoch=producer.producer_epoch + 1)


# --- transactions v1


@pytest.mark.parametrize("committed", [True, False])
def test_v1_keeps_the_epoch_and_takes_retries(harness: Harness, committed: bool) -> None:
    producer = harness.init()
    for _ in range(2):
        harness.add(producer, A, B, version=0)
        assert harness.end(producer, committed, version=0) == (-1, -1)
        assert harness.markers.take() == [Marker(A, producer, committed, 0), Marker(B, producer, committed, 0)]
        assert harness.end(producer, committed, version=0) == (-1, -1)
        assert error_of(lambda: harness.end(producer, not committed, version=0)) is INVALID
        assert harness.markers.take() == []
    assert harness.state().state is (TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT)
    assert harness.state().partitions == frozenset()


@pytest.mark.parametrize("committed", [True, False])
def test_v1_cannot_end_what_has_not_begun(harness: Harness, committed: bool) -> None:
    producer = harness.init()
    assert error_of(lambda: harness.end(producer, committed, version=0)) is INVALID


def test_v1_checks_who_asks(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A, version=0)
    other = ProducerIdAndEpoch(producer.producer_id + 1, 0)
    assert error_of(lambda: harness.end(other, version=0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: harness.end(_next(producer), version=0)) is FENCED
    assert error_of(lambda: harness.end(producer, transactional_id="x", version=0)) is (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    assert error_of(lambda: harness.end(producer, transactional_id="", version=0)) is ErrorCode.INVALID_REQUEST
    assert harness.state().state is TransactionState.ONGOING


# --- transactions v2


@pytest.mark.parametrize("committed", [True, False])
def test_v2_bumps_the_epoch_and_answers_a_retry_with_it(harness: Harness, committed: bool) -> None:
    producer = harness.init()
    for _ in range(3):
        harness.add(producer, A, B)
        bumped = harness.end(producer, committed)
        assert bumped == _next(producer)
        assert harness.markers.take() == [Marker(A, bumped, committed), Marker(B, bumped, committed)]
        assert harness.end(producer, committed) == bumped
        assert error_of(partial(harness.end, producer, not committed)) is INVALID
        assert error_of(partial(harness.add, producer, A)) is FENCED
        assert harness.markers.take() == []
        producer = bumped


def test_v2_retry_after_a_restart(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    bumped = harness.end(producer)
    harness.crash()
    assert harness.end(producer) == bumped


def _in_state(harness: Harness, state: TransactionState) -> ProducerIdAndEpoch:
    producer = harness.init()
    if state is TransactionState.EMPTY:
        return harness.init()
    harness.add(producer, A)
    producer = harness.end(producer, state is TransactionState.COMPLETE_COMMIT)
    harness.markers.take()
    return producer


@pytest.mark.parametrize(
    ("state", "abort_retry", "commit_retry"),
    [
        (TransactionState.EMPTY, FENCED, FENCED),
        (TransactionState.COMPLETE_ABORT, FINE, INVALID),
        (TransactionState.COMPLETE_COMMIT, INVALID, FINE),
    ],
)
def test_v2_table(state: TransactionState, abort_retry: ErrorCode, commit_retry: ErrorCode) -> None:
    harness = Harness()
    current = _in_state(harness, state)
    before = current._replace(producer_epoch=current.producer_epoch - 1)
    assert error_of(lambda: harness.end(before, False)) is abort_retry
    assert error_of(lambda: harness.end(before, True)) is commit_retry
    assert error_of(lambda: harness.end(current, True)) is INVALID
    assert error_of(lambda: harness.end(_next(current), True)) is FENCED
    assert error_of(lambda: harness.end(_next(current), False)) is FENCED
    assert harness.state().producer == current
    # Only an abort with the current epoch does anything: it ends a transaction that has no partitions.
    assert harness.end(current, False) == _next(current)
    assert harness.state().state is TransactionState.COMPLETE_ABORT
    assert harness.state().start_ms == harness.timer.now_ms()
    assert harness.markers.take() == []


def test_v2_a_zombie_of_an_earlier_epoch_cannot_end_an_ongoing_transaction(harness: Harness) -> None:
    old = harness.init()
    harness.add(old, A)
    new = harness.end(old)
    harness.add(new, A)
    assert error_of(lambda: harness.end(old, True)) is FENCED
    assert error_of(lambda: harness.end(old, False)) is FENCED
    assert harness.state().state is TransactionState.ONGOING


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("committed", [True, False])
def test_v2_the_last_epoch_rotates_the_producer_id(harness: Harness, committed: bool, crash: bool) -> None:
    harness.plant(TransactionMetadata("t", 500, 60_000, 1, producer_epoch=LAST))
    last = ProducerIdAndEpoch(500, LAST)
    harness.add(last, A)
    harness.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    fresh = harness.end(last, committed)
    assert fresh == (0, 0)
    # The client may use its new producer id before the old one's markers are written.
    assert harness.state().producer == (500, LAST + 1)
    assert error_of(lambda: harness.add(fresh, A)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(lambda: harness.end(fresh, committed)) is ErrorCode.CONCURRENT_TRANSACTIONS
    if crash:
        harness.crash()
    harness.markers.failing.clear()
    harness.timer.advance(1_000)
    assert harness.markers.take() == [Marker(A, ProducerIdAndEpoch(500, LAST + 1), committed)]
    assert harness.state().producer == fresh
    assert harness.end(last, committed) == fresh
    assert error_of(lambda: harness.end(last, not committed)) is INVALID
    harness.add(fresh, A)
    assert harness.end(fresh) == (0, 1)
    assert error_of(lambda: harness.end(last)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# --- markers that cannot be written


@pytest.mark.parametrize("version", [0, 2])
def test_a_decided_transaction_is_completed_as_soon_as_the_storage_allows(harness: Harness, version: int) -> None:
    producer = harness.init()
    harness.add(producer, A, B, version=version)
    harness.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    harness.end(producer, version=version)
    assert [marker.partition for marker in harness.markers.take()] == [B]
    assert harness.state().state is TransactionState.PREPARE_COMMIT
    assert harness.state().partitions == {A}
    assert error_of(lambda: harness.end(producer, version=version)) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(lambda: harness.add(producer, version=version)) is ErrorCode.CONCURRENT_TRANSACTIONS
    harness.timer.advance(5_000)
    assert harness.state().state is TransactionState.PREPARE_COMMIT
    harness.markers.failing.clear()
    harness.timer.advance(5_000)
    assert [marker.partition for marker in harness.markers.take()] == [A]
    assert harness.state().state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ],
)
def test_a_partition_that_is_gone_or_further_on_is_passed_over(harness: Harness, code: ErrorCode) -> None:
    producer = harness.init()
    harness.add(producer, A, B)
    harness.markers.failing[A] = code
    harness.end(producer)
    assert [marker.partition for marker in harness.markers.take()] == [B]
    assert harness.state().state is TransactionState.COMPLETE_COMMIT


def test_a_bug_in_the_marker_writer_does_not_lose_the_transaction(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = harness.init()
    harness.add(producer, A)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(harness.markers, "write_marker", broken)
        with pytest.raises(ZeroDivisionError):
            harness.end(producer)
    harness.timer.advance(1_000)
    assert harness.state().state is TransactionState.COMPLETE_COMMIT


def test_the_complete_record_is_retried(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = harness.init()
    harness.add(producer, A)
    write_marker = harness.markers.write_marker

    def write_and_fill_the_disk(*arguments: object) -> None:
        write_marker(*arguments)  # type: ignore[arg-type]  # handed on as they came
        harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))

    monkeypatch.setattr(harness.markers, "write_marker", write_and_fill_the_disk)
    assert harness.end(producer) == _next(producer)
    assert harness.state().state is TransactionState.PREPARE_COMMIT
    harness.log.fail_with(None)
    harness.timer.advance(1_000)
    assert harness.state().state is TransactionState.COMPLETE_COMMIT
    assert len(harness.markers.take()) == 1


@pytest.mark.parametrize("version", [0, 2])
def test_an_undecided_end_may_be_tried_again(harness: Harness, version: int) -> None:
    producer = harness.init()
    harness.add(producer, A, version=version)
    harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert error_of(lambda: harness.end(producer, version=version)) is ErrorCode.NOT_COORDINATOR
    assert harness.markers.take() == []
    harness.log.fail_with(None)
    harness.end(producer, False, version=version)
    assert [marker.committed for marker in harness.markers.take()] == [False]


# --- crashes


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_a_crash_after_any_record(version: int, committed: bool) -> None:
    """The log is cut after each record in turn; what was decided stays decided, what was not carries on."""
    reference = Harness()
    producer = reference.init()
    reference.add(producer, A, version=version)
    reference.add(producer, B, version=version)
    reference.end(producer, committed, version=version)
    records = reference.log.records()
    assert len(records) == 5
    for count in range(1, len(records) + 1):
        harness = Harness()
        harness.blocks.next_start = 1000
        harness.log.append(harness.log.partition_for("t"), records[:count])
        harness.crash()
        state = harness.state().state
        written = {(marker.partition, marker.committed) for marker in harness.markers.take()}
        if count < 4:
            assert state is (TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.ONGOING)[count - 1]
            assert written == set()
            harness.add(producer, A, B, version=version)
            harness.end(producer, committed, version=version)
            assert {marker.partition for marker in harness.markers.take()} == {A, B}
        else:
            assert written == ({(A, committed), (B, committed)} if count == 4 else set())
            assert state is (TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT)
            harness.end(producer, committed, version=version)
            assert harness.markers.take() == []

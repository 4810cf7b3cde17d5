import pytest

from millstream.broker.transactions.config import TransactionConfig
from millstream.broker.transactions.metadata import NO_TIMEOUT, ProducerIdAndEpoch, TransactionMetadata
from millstream.broker.transactions.states import TransactionState
from millstream.wire.errors import ErrorCode, KafkaError
from support.transactions import Harness, Marker, error_of

A = ("a", 0)
LAST = 32_766


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_an_idempotent_producer_gets_an_id_of_its_own_and_leaves_no_trace(harness: Harness) -> None:
    first = harness.coordinator.init_producer_id(None, 0)
    second = harness.coordinator.init_producer_id(None, 0)
    assert (first.producer_epoch, second.producer_epoch) == (0, 0)
    assert first.producer_id != second.producer_id
    assert harness.log.records() == []


def test_each_new_instance_bumps_the_epoch_of_the_same_producer_id(harness: Harness) -> None:
    assert [harness.init() for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    assert harness.init("other") == (1, 0)
    assert harness.state().state is TransactionState.EMPTY


def test_the_epoch_goes_on_after_a_restart(harness: Harness) -> None:
    harness.init()
    harness.crash()
    assert harness.init() == (0, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds(harness: Harness, timeout_ms: int) -> None:
    assert error_of(lambda: harness.init(timeout_ms=timeout_ms)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert harness.init(timeout_ms=900_000) == (0, 0)


def test_an_empty_transactional_id(harness: Harness) -> None:
    assert error_of(lambda: harness.init("")) is ErrorCode.INVALID_REQUEST


def test_two_phase_commit_must_be_enabled() -> None:
    def enable(harness: Harness, *, keep: bool = False) -> ProducerIdAndEpoch:
        return harness.coordinator.init_producer_id(
            "t", 5, enable_two_phase_commit=True, keep_prepared_transaction=keep
        )

    assert error_of(lambda: enable(Harness())) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    harness = Harness(TransactionConfig(transaction_two_phase_commit_enable=True))
    assert error_of(lambda: enable(harness, keep=True)) is ErrorCode.UNSUPPORTED_VERSION
    producer = enable(harness)
    assert harness.state().timeout_ms == NO_TIMEOUT
    harness.add(producer, A)
    harness.timer.advance(10**7)
    assert harness.state().state is TransactionState.ONGOING


# --- KIP-360: the same instance after an error


def test_the_current_epoch_is_bumped_and_a_lost_response_repeated(harness: Harness) -> None:
    first = harness.init()
    assert harness.init(expected=first) == (0, 1)
    assert harness.init(expected=first) == (0, 1)
    assert harness.init(expected=ProducerIdAndEpoch(0, 1)) == (0, 2)


def test_an_instance_that_was_replaced_is_fenced(harness: Harness) -> None:
    first = harness.init()
    harness.init()
    assert error_of(lambda: harness.init(expected=first)) is ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: harness.init(expected=ProducerIdAndEpoch(99, 0))) is ErrorCode.PRODUCER_FENCED
    assert harness.state().producer == (0, 1)


def test_an_expired_transactional_id_may_be_recovered_with_any_expectation(harness: Harness) -> None:
    assert harness.init(expected=ProducerIdAndEpoch(55, 8)) == (0, 0)


def test_a_retry_across_a_restart_is_fenced_because_the_last_epoch_is_not_in_the_log(harness: Harness) -> None:
    first = harness.init()
    harness.init(expected=first)
    harness.crash()
    assert error_of(lambda: harness.init(expected=first)) is ErrorCode.PRODUCER_FENCED


# --- the end of the epochs


def _at_epoch(harness: Harness, epoch: int, state: TransactionState = TransactionState.EMPTY) -> ProducerIdAndEpoch:
    harness.plant(
        TransactionMetadata("t", 500, 60_000, harness.timer.now_ms(), producer_epoch=epoch, state=state, start_ms=1)
    )
    return ProducerIdAndEpoch(500, epoch)


def test_a_new_producer_id_when_the_epochs_are_used_up(harness: Harness) -> None:
    _at_epoch(harness, LAST - 1)
    assert harness.init() == (500, LAST)
    assert harness.init() == (0, 0)
    assert harness.state().previous_producer_id == 500


def test_the_rotation_for_an_expected_epoch_may_be_retried(harness: Harness) -> None:
    last = _at_epoch(harness, LAST)
    assert harness.init(expected=last) == (0, 0)
    assert harness.init(expected=last) == (0, 0)
    harness.init()
    assert error_of(lambda: harness.init(expected=last)) is ErrorCode.PRODUCER_FENCED


def test_an_old_epoch_of_an_exhausted_producer_is_an_error_as_in_kafka(harness: Harness) -> None:
    _at_epoch(harness, LAST)
    with pytest.raises(KafkaError, match="used up"):
        harness.init(expected=ProducerIdAndEpoch(500, LAST - 1))
    assert harness.state().producer == (500, LAST)


# --- an ongoing transaction of the earlier instance


@pytest.mark.parametrize("level", [1, 2])
def test_it_is_fenced_and_aborted_before_the_next_instance_gets_its_epoch(level: int) -> None:
    harness = Harness(transaction_version=level)
    zombie = harness.init()
    harness.add(zombie, A, version=level)
    assert error_of(harness.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert harness.markers.take() == [Marker(A, ProducerIdAndEpoch(0, 1), False, 2 if level == 2 else 0)]
    assert harness.state().state is TransactionState.COMPLETE_ABORT
    assert harness.init() == (0, 2)
    assert error_of(lambda: harness.end(zombie, version=level)) is ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: harness.add(zombie, A, version=level)) is ErrorCode.PRODUCER_FENCED
    assert harness.markers.take() == []


@pytest.mark.parametrize("level", [1, 2])
def test_also_in_the_last_epoch(level: int) -> None:
    harness = Harness(transaction_version=level)
    zombie = _at_epoch(harness, LAST)
    harness.add(zombie, A)
    assert error_of(harness.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert harness.markers.take() == [Marker(A, ProducerIdAndEpoch(500, LAST + 1), False, 2 if level == 2 else 0)]
    assert harness.init() in ((0, 0), (0, 1))
    assert error_of(lambda: harness.add(zombie, A)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_while_the_markers_wait_for_the_disk_it_stays_concurrent(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    harness.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    assert [error_of(harness.init) for _ in range(3)] == [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    harness.markers.failing.clear()
    harness.timer.advance(1_000)
    assert harness.init() == (0, 2)


def test_an_expectation_is_checked_before_an_ongoing_transaction_is_aborted(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    assert error_of(lambda: harness.init(expected=ProducerIdAndEpoch(9, 9))) is ErrorCode.PRODUCER_FENCED
    assert harness.state().state is TransactionState.ONGOING


# --- a log that refuses


def test_nothing_changes_when_the_log_refuses(harness: Harness) -> None:
    producer = harness.init()
    harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full"))
    assert error_of(harness.init) is ErrorCode.NOT_COORDINATOR
    assert error_of(lambda: harness.init("new")) is ErrorCode.NOT_COORDINATOR
    assert harness.state().producer == producer
    assert error_of(lambda: harness.state("new")) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    harness.log.fail_with(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    assert error_of(harness.init) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.log.fail_with(None)
    assert harness.init() == (0, 1)


def test_a_fence_that_could_not_be_written_does_not_use_up_epochs(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert [error_of(harness.init) for _ in range(3)] == [ErrorCode.NOT_COORDINATOR] * 3
    harness.log.fail_with(None)
    assert error_of(harness.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert harness.init() == (0, 2)

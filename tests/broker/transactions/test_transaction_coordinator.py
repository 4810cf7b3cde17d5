"""What the other test files do not cover: partitions, verification, time, restarts, queries."""

import pytest

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.transactions.config import TransactionConfig
from millstream.broker.transactions.coordinator import TransactionCoordinator
from millstream.broker.transactions.metadata import ProducerIdAndEpoch
from millstream.broker.transactions.producer_ids import ProducerIds
from millstream.broker.transactions.records import encode_key, encode_record
from millstream.broker.transactions.states import TransactionState
from millstream.broker.transactions.verification import (
    TransactionSupportedOperation,
    error_for_client,
    error_for_producer,
    operation_of_produce,
    operation_of_txn_offset_commit,
)
from millstream.wire.errors import ErrorCode, KafkaError
from support.transactions import Harness, Marker, error_of

A, B = ("a", 0), ("b", 3)
DEFAULT, GENERIC, ADD = TransactionSupportedOperation


@pytest.fixture
def harness() -> Harness:
    return Harness()


# --- adding partitions


def test_the_first_partition_begins_the_transaction(harness: Harness) -> None:
    producer = harness.init()
    harness.timer.advance(500)
    harness.add(producer, A)
    began = harness.timer.now_ms()
    harness.timer.advance(500)
    harness.add(producer, B)
    state = harness.state()
    assert state.partitions == {A, B}
    assert (state.state, state.start_ms) == (TransactionState.ONGOING, began)
    assert state.last_update_ms == began + 500
    harness.add(harness.end(producer), A)
    assert harness.state().start_ms == began + 500


def test_partitions_that_are_in_it_already_cost_nothing(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A, B)
    written = len(harness.log.records())
    harness.add(producer, B)
    assert len(harness.log.records()) == written


def test_who_may_add(harness: Harness) -> None:
    producer = harness.init()
    newer = ProducerIdAndEpoch(producer.producer_id, 1)
    other = ProducerIdAndEpoch(77, 0)
    assert error_of(lambda: harness.add(newer, A)) is ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: harness.add(other, A)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: harness.add(producer, A, transactional_id="x")) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: harness.add(producer, A, transactional_id="")) is ErrorCode.INVALID_REQUEST
    assert harness.state().state is TransactionState.EMPTY


def test_a_partition_that_could_not_be_recorded_is_not_in_the_transaction(harness: Harness) -> None:
    producer = harness.init()
    harness.log.fail_with(KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
    assert error_of(lambda: harness.add(producer, A)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.state().partitions == frozenset()


# --- verification before an append


@pytest.mark.parametrize(
    ("operation", "code"),
    [(DEFAULT, ErrorCode.INVALID_TXN_STATE), (GENERIC, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_partition_outside_the_transaction_is_refused(
    harness: Harness, operation: TransactionSupportedOperation, code: ErrorCode
) -> None:
    producer = harness.init()
    harness.add(producer, A)
    assert harness.coordinator.verify_partition("t", *producer, [A, B], operation) == {B: code}
    assert harness.state().partitions == {A}


def test_transactions_v2_add_it_on_the_way(harness: Harness) -> None:
    producer = harness.init()
    assert harness.coordinator.verify_partition("t", *producer, [A, B], ADD) == {}
    state = harness.state()
    assert state.partitions == {A, B}
    assert (state.state, state.client_transaction_version) == (TransactionState.ONGOING, 2)


@pytest.mark.parametrize("operation", TransactionSupportedOperation)
def test_a_fenced_producer_must_not_append(harness: Harness, operation: TransactionSupportedOperation) -> None:
    producer = harness.init()
    harness.add(producer, A)
    bumped = harness.end(producer)
    verify = harness.coordinator.verify_partition
    assert verify("t", *producer, [A], operation) == {A: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert verify("t", 99, 0, [A], operation) == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert verify("x", *bumped, [A], operation) == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_nothing_is_appended_while_markers_are_written(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    harness.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    bumped = harness.end(producer)
    for operation in (DEFAULT, ADD):
        errors = harness.coordinator.verify_partition("t", *bumped, [A], operation)
        assert errors == {A: ErrorCode.CONCURRENT_TRANSACTIONS}


def test_verification_can_be_switched_off_but_not_the_adding() -> None:
    harness = Harness(TransactionConfig(transaction_partition_verification_enable=False))
    producer = harness.init()
    assert harness.coordinator.verify_partition("t", *producer, [A], DEFAULT) == {}
    assert harness.state().state is TransactionState.EMPTY
    assert harness.coordinator.verify_partition("t", *producer, [A], ADD) == {}
    assert harness.state().partitions == {A}


def test_versions_and_what_they_support() -> None:
    assert [operation_of_produce(version) for version in (10, 11, 12)] == [DEFAULT, GENERIC, ADD]
    assert [operation_of_txn_offset_commit(version) for version in (3, 4, 5)] == [DEFAULT, GENERIC, ADD]


def test_errors_as_clients_know_them() -> None:
    assert error_for_client(ErrorCode.PRODUCER_FENCED, knows_fencing=False) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_for_client(ErrorCode.PRODUCER_FENCED, knows_fencing=True) is ErrorCode.PRODUCER_FENCED
    assert error_for_producer(ErrorCode.NOT_COORDINATOR, ADD) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert error_for_producer(ErrorCode.CONCURRENT_TRANSACTIONS, GENERIC) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert error_for_producer(ErrorCode.CONCURRENT_TRANSACTIONS, ADD) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_check_produce_refuses_and_lets_through(harness: Harness) -> None:
    producer = harness.init()

    def check(version: int) -> ErrorCode:
        return error_of(lambda: harness.coordinator.check_produce("t", *producer, A, version))

    assert (check(10), check(11)) == (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
    assert (check(12), check(10)) == (ErrorCode.NONE, ErrorCode.NONE)


# --- time


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(harness: Harness, version: int) -> None:
    producer = harness.init(timeout_ms=25_000)
    harness.add(producer, A, version=version)
    harness.timer.advance(20_000)
    assert harness.state().state is TransactionState.ONGOING
    harness.timer.advance(10_000)
    assert harness.markers.take() == [Marker(A, ProducerIdAndEpoch(0, 1), False, 2)]
    assert harness.state().state is TransactionState.COMPLETE_ABORT
    assert error_of(lambda: harness.add(producer, A, version=version)) is ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: harness.end(producer, True, version=0)) is ErrorCode.PRODUCER_FENCED
    # A v2 client may repeat an abort: to it this looks like its own.
    assert error_of(lambda: harness.end(producer, True, version=2)) is ErrorCode.INVALID_TXN_STATE


def test_the_time_runs_from_the_start_across_a_restart(harness: Harness) -> None:
    producer = harness.init(timeout_ms=25_000)
    harness.add(producer, A)
    harness.timer.advance(24_000)
    harness.crash()
    harness.timer.advance(10_000)
    assert harness.state().state is TransactionState.COMPLETE_ABORT


def test_a_timeout_that_could_not_be_recorded_is_tried_at_the_next_scan(harness: Harness) -> None:
    harness.add(harness.init(timeout_ms=1_000), A)
    harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    harness.timer.advance(10_000)
    assert harness.state().state is TransactionState.ONGOING
    harness.log.fail_with(None)
    harness.timer.advance(10_000)
    assert harness.state().state is TransactionState.COMPLETE_ABORT


def test_idle_transactional_ids_expire_and_open_ones_do_not() -> None:
    hour = 3_600_000
    harness = Harness(TransactionConfig(transactional_id_expiration_ms=2 * hour, transaction_max_timeout_ms=10 * hour))
    harness.init("empty")
    harness.add(harness.init("open", timeout_ms=10 * hour), A, transactional_id="open")
    done = harness.init("done")
    harness.add(done, A, transactional_id="done")
    harness.end(done, transactional_id="done")
    harness.timer.advance(hour)
    harness.init("busy")
    assert len(harness.coordinator.list_transactions().transactions) == 4
    harness.timer.advance(hour)
    remaining = {each.transactional_id for each in harness.coordinator.list_transactions().transactions}
    assert remaining == {"open", "busy"}
    assert [record.value for record in harness.log.records() if record.key == encode_key("done")][-1] is None
    harness.crash()
    assert {each.transactional_id for each in harness.coordinator.list_transactions().transactions} == remaining
    assert harness.init("done").producer_epoch == 0


def test_tombstones_come_in_batches_of_bounded_size(harness: Harness) -> None:
    for number in range(60):
        harness.init(f"{number}-" + "x" * 32_000)
    before = sum(map(len, harness.log.entries))
    harness.timer.advance(604_800_000 + 3_600_000)
    assert harness.coordinator.list_transactions().transactions == []
    assert sum(map(len, harness.log.entries)) - before > 3


def test_ids_whose_tombstones_could_not_be_written_stay(harness: Harness) -> None:
    harness.init()
    harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    harness.timer.advance(604_800_000 + 3_600_000)
    assert harness.state().state is TransactionState.EMPTY
    harness.log.fail_with(None)
    harness.timer.advance(3_600_000)
    assert error_of(harness.state) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_stopped_coordinator_leaves_no_calls_behind(harness: Harness) -> None:
    producer = harness.init()
    harness.add(producer, A)
    harness.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    harness.end(producer)
    harness.timer.advance(30_000)
    harness.coordinator.stop()
    assert harness.timer.pending() == 0


# --- replay


def test_a_compacted_log_tells_the_same(harness: Harness) -> None:
    for name in ("x", "y", "z"):
        producer = harness.init(name)
        harness.add(producer, A, transactional_id=name)
    harness.end(producer, transactional_id="z")
    before = harness.coordinator.list_transactions().transactions
    harness.log = harness.log.compacted()
    harness.crash()
    after = harness.coordinator.list_transactions().transactions
    assert {each.transactional_id: each.producer for each in after} == {
        each.transactional_id: each.producer for each in before
    }
    assert {each.transactional_id: each.state for each in after} == {
        each.transactional_id: each.state for each in before
    }


def test_records_that_cannot_be_read_do_not_keep_the_others_from_loading(harness: Harness) -> None:
    harness.init()
    value = encode_record(harness.state(), 2).value
    assert value is not None
    harness.log.append(
        harness.log.partition_for("t"),
        [KeyValue(b"", b""), KeyValue(b"\0\7", value), KeyValue(encode_key("broken"), value[:9])],
    )
    harness.crash()
    assert harness.state().producer == (0, 0)
    assert error_of(lambda: harness.state("broken")) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_only_the_named_partitions_are_loaded(harness: Harness) -> None:
    harness.init()
    owner = harness.log.partition_for("t")
    fresh = TransactionCoordinator(harness.log, harness.timer, ProducerIds(harness.blocks.reserve), harness.markers)
    fresh.load([partition for partition in range(3) if partition != owner])
    assert fresh.list_transactions().transactions == []
    fresh.load([owner])
    assert len(fresh.list_transactions().transactions) == 1


# --- queries


def test_describe(harness: Harness) -> None:
    assert error_of(lambda: harness.state("")) is ErrorCode.INVALID_REQUEST
    assert error_of(lambda: harness.state("x")) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    producer = harness.init()
    assert harness.state().producer == producer


def _listed(harness: Harness, **filters: object) -> list[str]:
    listing = harness.coordinator.list_transactions(**filters)  # type: ignore[arg-type]  # each test gives its own
    return sorted(each.transactional_id for each in listing.transactions)


def test_filters(harness: Harness) -> None:
    old = harness.init("old")
    harness.add(old, A, transactional_id="old")
    harness.timer.advance(5_000)
    new = harness.init("new")
    harness.add(new, A, transactional_id="new")
    harness.init("idle")
    assert _listed(harness) == ["idle", "new", "old"]
    assert _listed(harness, states=["Ongoing"]) == ["new", "old"]
    assert _listed(harness, states=["Empty", "Ongoing"]) == ["idle", "new", "old"]
    assert _listed(harness, producer_ids=[new.producer_id]) == ["new"]
    assert _listed(harness, states=["Ongoing"], duration_ms=4_999) == ["old"]
    assert _listed(harness, states=["Ongoing"], duration_ms=5_000) == []
    assert _listed(harness, pattern="i.*|o..") == ["idle", "old"]
    assert _listed(harness, pattern="l") == []
    assert _listed(harness, pattern="") == ["idle", "new", "old"]
    assert error_of(lambda: _listed(harness, pattern="(")) is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_states_that_do_not_exist_are_named(harness: Harness) -> None:
    harness.init()
    listing = harness.coordinator.list_transactions(states=["Nonsense", "Dead"])
    assert (listing.transactions, listing.unknown_states) == ([], ["Nonsense"])


def test_the_config_may_change_while_it_runs(harness: Harness) -> None:
    assert error_of(lambda: harness.init(timeout_ms=900_001)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    harness.coordinator.config = TransactionConfig(transaction_max_timeout_ms=1_000_000)
    assert harness.init(timeout_ms=900_001) == (0, 0)


def test_the_format_of_the_log_follows_the_feature_level(harness: Harness) -> None:
    versions = []
    for harness.transaction_version in (0, 1, 2):
        harness.init()
        value = harness.log.records()[-1].value
        assert value is not None
        versions.append(value[:2])
    assert versions == [b"\0\0", b"\0\1", b"\0\1"]
    harness.crash()
    assert harness.init() == (0, 3)

"""Random producers, retries, lost responses, crashes, full disks and time, against what transactions promise.

The partitions of the model hold records, each with the number of the transaction it was written in; a marker closes the
open records of its producer. The outcome of a transaction is its Prepare record, counted in the coordinator's log. The
promises:

- a record's outcome is that of its transaction: never both, and never undone;
- when a transactional id has no transaction open or prepared, no partition has an open record of it;
- what a producer was told about its transaction is what the log says;
- once a new instance of a producer is initialized, nothing that an earlier one asks for succeeds;
- no producer id serves two transactional ids;
- and when the disk is well again, everything ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from millstream.broker.transactions.metadata import ProducerIdAndEpoch, TopicPartition, TransactionMetadata
from millstream.broker.transactions.records import decode_record
from millstream.broker.transactions.states import TransactionState
from millstream.broker.transactions.verification import TransactionSupportedOperation
from millstream.wire.errors import ErrorCode, KafkaError
from support.transactions import Harness

VERSIONS = {"v1": 0, "v2": 2, "v2-late": 2}
"""Transactional ids and the transaction version that their clients speak."""
PARTITIONS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0)]
TRY_AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS}
NAMES = st.sampled_from(sorted(VERSIONS))
NUMBERS = st.integers(0, 3)


@dataclass
class Record:
    transaction: tuple[str, int]
    committed: bool | None = None


@dataclass
class ProducerState:
    """What a partition knows of a producer id."""

    epoch: int = -1
    open: list[Record] = field(default_factory=list)


@dataclass
class Instance:
    """A client: one life of a producer."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    fenced: bool = False
    dead: bool = False
    asked: bool | None = None
    """The outcome it asked for and has no answer to."""
    written: list[Record] = field(default_factory=list)

    @property
    def version(self) -> int:
        return VERSIONS[self.transactional_id]


class Partitions:
    """Implements `MarkerWriter` with the checks of a real partition."""

    def __init__(self) -> None:
        self.producers: dict[tuple[TopicPartition, int], ProducerState] = {}
        self.failing: set[TopicPartition] = set()

    def of(self, partition: TopicPartition, producer_id: int) -> ProducerState:
        return self.producers.setdefault((partition, producer_id), ProducerState())

    def write_marker(
        self,
        topic: str,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int,
    ) -> None:
        if (topic, partition) in self.failing:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        state = self.of((topic, partition), producer_id)
        bumped = transaction_version >= 2 and bool(state.open)
        assert producer_epoch > state.epoch or (producer_epoch == state.epoch and not bumped)
        state.epoch = producer_epoch
        for record in state.open:
            assert record.committed is None
            record.committed = committed
        state.open = []


class Transactions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness()
        self.partitions = Partitions()
        self.records: list[Record] = []
        self.instances: list[Instance] = []
        self.owners: dict[int, str] = {}

    @initialize()
    def begin(self) -> None:
        # One of them is near the end of its epochs, so that producer ids are rotated now and then.
        self.harness.markers.write_marker = self.partitions.write_marker  # type: ignore[method-assign]  # the model's
        self.harness.plant(TransactionMetadata("v2-late", 5_000, 30_000, 1, producer_epoch=32_764))

    # --- what is true of the log

    def decisions(self, transactional_id: str) -> list[bool]:
        """The outcomes of the transactions of this id, in order."""
        found = []
        for record in self.harness.log.records():
            decoded = decode_record(record)
            assert decoded is not None
            name, metadata = decoded
            if name == transactional_id and metadata is not None and metadata.state.is_prepared:
                found.append(metadata.state is TransactionState.PREPARE_COMMIT)
        return found

    def instance(self, number: int) -> Instance | None:
        alive = [each for each in self.instances if not each.dead]
        return alive[number % len(alive)] if alive else None

    def refused(self, instance: Instance, error: KafkaError) -> None:
        if error.code not in TRY_AGAIN:
            instance.dead = True

    # --- producers

    @rule(name=NAMES, timeout_ms=st.sampled_from([5_000, 60_000]))
    def new_instance(self, name: str, timeout_ms: int) -> None:
        try:
            producer = self.harness.init(name, timeout_ms=timeout_ms)
        except KafkaError as error:
            if error.code not in TRY_AGAIN:
                raise
            return
        assert self.owners.setdefault(producer.producer_id, name) == name
        for earlier in self.instances:
            if earlier.transactional_id == name:
                assert earlier.producer != producer
                earlier.fenced = True
        self.instances.append(Instance(name, producer))

    @rule(number=NUMBERS)
    def recover(self, number: int) -> None:
        """KIP-360: the same instance wants to go on."""
        instance = self.instance(number)
        if instance is None or instance.asked is not None:
            return
        try:
            producer = self.harness.init(instance.transactional_id, expected=instance.producer)
        except KafkaError as error:
            self.refused(instance, error)
            return
        assert not instance.fenced
        assert producer != instance.producer
        instance.producer = producer
        instance.written = []

    @rule(number=NUMBERS, partition=st.sampled_from(PARTITIONS))
    def produce(self, number: int, partition: TopicPartition) -> None:
        instance = self.instance(number)
        if instance is None or instance.asked is not None:
            return
        name, producer = instance.transactional_id, instance.producer
        operation = TransactionSupportedOperation.ADD_PARTITION
        if instance.version < 2:
            operation = TransactionSupportedOperation.DEFAULT_ERROR
            try:
                self.harness.add(producer, partition, transactional_id=name, version=0)
            except KafkaError as error:
                self.refused(instance, error)
                return
            assert not instance.fenced
        errors = self.harness.coordinator.verify_partition(name, *producer, [partition], operation)
        if errors:
            self.refused(instance, KafkaError(errors[partition]))
            return
        assert not instance.fenced
        state = self.partitions.of(partition, producer.producer_id)
        assert producer.producer_epoch >= state.epoch
        state.epoch = producer.producer_epoch
        record = Record((name, len(self.decisions(name))))
        state.open.append(record)
        self.records.append(record)
        instance.written.append(record)

    @rule(number=NUMBERS, committed=st.booleans(), answer_arrives=st.booleans())
    def end(self, number: int, committed: bool, answer_arrives: bool) -> None:
        """Ends the transaction. A client whose answer was lost asks for the same again, and for nothing else."""
        instance = self.instance(number)
        if instance is None:
            return
        if instance.asked is not None:
            committed = instance.asked
        elif committed and not instance.written:
            return
        name, version = instance.transactional_id, instance.version
        try:
            producer = self.harness.end(instance.producer, committed, transactional_id=name, version=version)
        except KafkaError as error:
            self.refused(instance, error)
            instance.asked = committed if error.code in TRY_AGAIN else None
            return
        assert not instance.fenced
        again = self.repeated(instance, committed)
        assert again in (producer, None)
        if not answer_arrives:
            instance.asked = committed
            return
        if version >= 2:
            assert producer != instance.producer
            instance.producer = producer
        decided = self.decisions(name)
        for record in instance.written:
            assert decided[record.transaction[1]] is committed
        instance.asked, instance.written = None, []

    def repeated(self, instance: Instance, committed: bool) -> ProducerIdAndEpoch | None:
        """The same EndTxn once more: the same answer, or none while the markers are being written."""
        before = self.decisions(instance.transactional_id)
        try:
            answer = self.harness.end(
                instance.producer, committed, transactional_id=instance.transactional_id, version=instance.version
            )
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise
            answer = None
        assert self.decisions(instance.transactional_id) == before
        return answer

    # --- the world

    @rule(partitions=st.sets(st.sampled_from(PARTITIONS)))
    def partitions_fail(self, partitions: set[TopicPartition]) -> None:
        self.partitions.failing = partitions

    @rule(fails=st.booleans())
    def log_fails(self, fails: bool) -> None:
        self.harness.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) if fails else None)

    @rule()
    def crash(self) -> None:
        self.harness.crash()

    @rule(milliseconds=st.sampled_from([50, 1_000, 12_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.harness.timer.advance(milliseconds)

    @precondition(lambda self: self.instances)
    @rule()
    def all_ends_well(self) -> None:
        self.log_fails(False)
        self.partitions_fail(set())
        self.harness.timer.advance(100_000)
        assert all(record.committed is not None for record in self.records)
        assert all(not metadata.state.is_prepared for metadata in self.harness.coordinator.list_transactions()[0])

    # --- promises

    @invariant()
    def a_record_shares_the_fate_of_its_transaction(self) -> None:
        decided = {name: self.decisions(name) for name in VERSIONS}
        for record in self.records:
            name, number = record.transaction
            if record.committed is not None:
                assert record.committed is decided[name][number]

    @invariant()
    def nothing_is_left_open(self) -> None:
        for metadata in self.harness.coordinator.list_transactions().transactions:
            if metadata.state.may_expire:
                name = metadata.transactional_id
                assert all(record.committed is not None for record in self.records if record.transaction[0] == name)


def test_transactions_keep_their_promises() -> None:
    run_state_machine_as_test(Transactions, settings=settings(max_examples=120, stateful_step_count=50, deadline=None))

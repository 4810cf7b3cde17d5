"""The transaction coordinator: what the requests of transactional producers do.

Synchronous and without I/O of its own: records go to the injected log, markers to the injected writer, time comes from
the injected timer, and one thread calls it. Each request looks the transactional id up, asks `initialization` or
`ending` what is to become of it, appends that, and only then answers; an error is a KafkaError and has changed nothing
(but a producer id that was taken for it is not given to anybody else).

A transaction is decided by its Prepare record. From there it is completed whatever happens (see `markers`): usually
before EndTxn is answered, after a storage error by a timer, after a crash by `load`. Ongoing transactions carry on
after a restart; their time runs from their start, not from the restart.

Not here: authorization, whether topics exist, and which errors a client of which version understands (`broker.apis`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from millstream.broker.coordinator_log import CoordinatorLog
from millstream.broker.timer import Timer, TimerHandle
from millstream.broker.transactions.config import TransactionConfig
from millstream.broker.transactions.ending import end_v1, end_v2
from millstream.broker.transactions.initialization import fence_and_abort, initialize
from millstream.broker.transactions.listing import Listing, list_transactions
from millstream.broker.transactions.markers import MarkerWriter, TransactionCompletion
from millstream.broker.transactions.metadata import (
    LATEST_TRANSACTION_VERSION,
    NO_PRODUCER,
    NO_TIMEOUT,
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
    supports_epoch_bump,
)
from millstream.broker.transactions.producer_ids import ProducerIds
from millstream.broker.transactions.states import TransactionState
from millstream.broker.transactions.store import TransactionStore
from millstream.broker.transactions.verification import (
    TransactionSupportedOperation,
    error_for_producer,
    error_for_writer,
    operation_of_produce,
)
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError

log = get_logger(__name__)


class TransactionCoordinator:
    def __init__(
        self,
        coordinator_log: CoordinatorLog,
        timer: Timer,
        producer_ids: ProducerIds,
        markers: MarkerWriter,
        config: TransactionConfig | None = None,
        *,
        transaction_version: Callable[[], int] = lambda: LATEST_TRANSACTION_VERSION,
        coordinator_epoch: int = 0,
    ) -> None:
        """`transaction_version` is the finalized level of that feature: it decides the format of the log and how a
        producer is fenced. What a client speaks, it says with each request."""
        self._log = coordinator_log
        self._timer = timer
        self._producer_ids = producer_ids
        self._transaction_version = transaction_version
        self._store = TransactionStore(coordinator_log, transaction_version)
        self._completion = TransactionCompletion(self._store, timer, markers, coordinator_epoch)
        self.config = config or TransactionConfig()
        """May be replaced at any time; the intervals count from the next `start`."""
        self._scans: dict[Callable[[], None], TimerHandle] = {}
        self.markers = markers
        """Also for markers that an administrator asks for (WriteTxnMarkers)."""

    # --- start, run, stop

    def load(self, partitions: Iterable[int] | None = None) -> None:
        """Replays the log (by default all its partitions) and completes what was decided before the stop or crash."""
        self._store.load(range(self._log.partition_count()) if partitions is None else partitions)
        for metadata in self._store:
            if metadata.state.is_prepared:
                self._completion.complete(metadata.transactional_id)

    def start(self) -> None:
        """Begins to look for timed-out transactions and idle transactional ids."""
        self._repeat(
            self.config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self.abort_timed_out_transactions
        )
        self._repeat(
            self.config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self.remove_expired_transactional_ids,
        )

    def stop(self) -> None:
        for handle in self._scans.values():
            handle.cancel()
        self._scans.clear()
        self._completion.stop()

    def _repeat(self, interval_ms: int, scan: Callable[[], None]) -> None:
        def run() -> None:
            self._repeat(interval_ms, scan)
            scan()

        self._scans[scan] = self._timer.call_later(interval_ms, run)

    # --- requests

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that a transactional id lives in; the topic is made if need be."""
        return self._log.partition_for(transactional_id)

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None = None,
        *,
        enable_two_phase_commit: bool = False,
        keep_prepared_transaction: bool = False,
    ) -> ProducerIdAndEpoch:
        """A producer id and epoch of one's own; without a transactional id a new id for an idempotent producer."""
        if transactional_id is None:
            return ProducerIdAndEpoch(self._producer_ids.next(), 0)
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if enable_two_phase_commit and not self.config.transaction_two_phase_commit_enable:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transaction.two.phase.commit.enable is false"
            )
        if keep_prepared_transaction:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "a prepared transaction cannot be kept")
        if enable_two_phase_commit:
            timeout_ms = NO_TIMEOUT
        elif not 0 < timeout_ms <= self.config.transaction_max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"{timeout_ms} ms is not between 1 and {self.config.transaction_max_timeout_ms} "
                "(transaction.max.timeout.ms)",
            )
        now_ms = self._timer.now_ms()
        metadata = self._store.get(transactional_id)
        if metadata is None:
            metadata = TransactionMetadata(transactional_id, self._producer_ids.next(), timeout_ms, now_ms)
        initialized = initialize(metadata, timeout_ms, expected, now_ms, self._producer_ids.next)
        if initialized is None:
            self._fence_and_abort(metadata)
            raise KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction of the earlier instance is aborted; try again"
            )
        self._store.append(initialized)
        return initialized.producer

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        client_transaction_version: int,
    ) -> None:
        """Adds partitions to the transaction and begins it if need be. An offsets partition is a partition, too."""
        metadata = self._lookup(transactional_id)
        # First, because while the producer id is being rotated the client may already use the new one.
        if metadata.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is not complete yet")
        _check_producer(metadata, producer_id, producer_epoch)
        if metadata.state is TransactionState.ONGOING and metadata.partitions.issuperset(partitions):
            return
        self._store.append(metadata.add_partitions(partitions, self._timer.now_ms(), client_transaction_version))

    def find_unverified(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Collection[TopicPartition]
    ) -> list[TopicPartition]:
        """Those of the partitions that are not in the transaction."""
        metadata = self._lookup(transactional_id)
        _check_producer(metadata, producer_id, producer_epoch)
        if metadata.state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is being completed")
        return [partition for partition in partitions if partition not in metadata.partitions]

    def verify_partition(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        operation: TransactionSupportedOperation,
    ) -> dict[TopicPartition, ErrorCode]:
        """Before a transactional append: the partitions that must not be written to, and why. See `verification`."""
        errors: dict[TopicPartition, ErrorCode] = {}
        try:
            if operation is TransactionSupportedOperation.ADD_PARTITION:
                self.add_partitions(
                    transactional_id, producer_id, producer_epoch, partitions, LATEST_TRANSACTION_VERSION
                )
            elif self.config.transaction_partition_verification_enable:
                missing = self.find_unverified(transactional_id, producer_id, producer_epoch, partitions)
                errors = dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
        except KafkaError as error:
            errors = dict.fromkeys(partitions, error.code)
        return {partition: error_for_writer(code, operation) for partition, code in errors.items()}

    def check_produce(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition, api_version: int
    ) -> None:
        """`verify_partition` for one partition of Produce: KafkaError if its batch must not be appended."""
        operation = operation_of_produce(api_version)
        errors = self.verify_partition(transactional_id, producer_id, producer_epoch, (partition,), operation)
        if errors:
            code = error_for_producer(errors[partition], operation)
            raise KafkaError(code, f"{partition[0]}-{partition[1]} is not in the transaction of {transactional_id}")

    def end_txn(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        client_transaction_version: int,
    ) -> ProducerIdAndEpoch:
        """Commits or aborts. With transactions v2 returns the producer id and epoch to go on with."""
        metadata = self._lookup(transactional_id)
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        now_ms = self._timer.now_ms()
        if not supports_epoch_bump(client_transaction_version):
            decided = end_v1(metadata, producer, committed, now_ms)
            if decided is not None:
                self._decide(decided)
            return NO_PRODUCER
        decided = end_v2(metadata, producer, committed, client_transaction_version, now_ms, self._producer_ids.next)
        if decided is None:
            return metadata.producer
        self._decide(decided)
        return decided.complete(now_ms).producer

    # --- what time does

    def abort_timed_out_transactions(self) -> None:
        now_ms = self._timer.now_ms()
        for metadata in self._store:
            if metadata.is_timed_out(now_ms):
                try:
                    self._fence_and_abort(metadata)
                except KafkaError as error:
                    log.warning("timed-out transaction not aborted", **_named(metadata), reason=str(error))
                else:
                    log.info("transaction timed out and aborted", **_named(metadata))

    def remove_expired_transactional_ids(self) -> None:
        oldest = self._timer.now_ms() - self.config.transactional_id_expiration_ms
        expired = [
            metadata.transactional_id
            for metadata in self._store
            if metadata.state.may_expire and metadata.last_update_ms <= oldest
        ]
        try:
            self._store.remove(expired)
        except KafkaError as error:
            log.warning("expired transactional ids not removed", count=len(expired), reason=str(error))

    # --- what is known

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> Listing:
        """The transactional ids that pass the filters, see `listing`."""
        return list_transactions(
            self._store,
            self._timer.now_ms(),
            states=states,
            producer_ids=producer_ids,
            duration_ms=duration_ms,
            pattern=pattern,
        )

    def describe_transaction(self, transactional_id: str) -> TransactionMetadata:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        metadata = self._store.get(transactional_id)
        if metadata is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id}")
        return metadata

    # --- inside

    def _lookup(self, transactional_id: str) -> TransactionMetadata:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        metadata = self._store.get(transactional_id)
        if metadata is None:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"the transactional id {transactional_id} has no producer id"
            )
        return metadata

    def _fence_and_abort(self, metadata: TransactionMetadata) -> None:
        now_ms = self._timer.now_ms()
        self._decide(fence_and_abort(metadata, self._transaction_version(), now_ms, self._producer_ids.next))

    def _decide(self, metadata: TransactionMetadata) -> None:
        """The point of no return: after this append the outcome is what it says."""
        self._store.append(metadata)
        self._completion.complete(metadata.transactional_id)


def _check_producer(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> None:
    if metadata.producer_id != producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"{metadata.transactional_id} belongs to producer {metadata.producer_id}, not to {producer_id}",
        )
    if metadata.producer_epoch != producer_epoch:
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"the epoch of {metadata.transactional_id} is {metadata.producer_epoch}, not {producer_epoch}",
        )


def _named(metadata: TransactionMetadata) -> dict[str, object]:
    return {
        "transactional_id": metadata.transactional_id,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
    }

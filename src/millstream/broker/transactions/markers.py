"""Writing the markers that end a transaction in each of its partitions.

All partitions live on this node, so a marker is an append and its outcome is known at once. `MarkerWriter` is how the
coordinator sees that; the broker implements it: append the control batch to the partition and, in `__consumer_offsets`,
tell the group coordinator that the offsets of this producer count now, or never.

`TransactionCompletion` takes a decided transaction (PrepareCommit, PrepareAbort) to its end: a marker in every
partition, then the Complete record. A partition that cannot take its marker now (disk full, I/O error) keeps the
transaction prepared, and a timer tries again until it works; so does a failed append of the Complete record. After a
crash in between `load` finds the Prepare record and everything is written again: a marker too many ends nothing twice.
A partition that is gone has nothing to end. One that has seen a newer epoch of the producer ended this transaction
before (`kafka-transactions.sh abort`); it is passed over, where Kafka would leave the transaction prepared until its
coordinator moves.
"""

from __future__ import annotations

from typing import Final, Protocol

from millstream.broker.timer import Timer, TimerHandle
from millstream.broker.transactions.metadata import TransactionMetadata
from millstream.broker.transactions.states import TransactionState
from millstream.broker.transactions.store import TransactionStore
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError

RETRY_MS: Final = 100
NOTHING_TO_END: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""Answers after which a partition needs no marker any more."""

log = get_logger(__name__)


class MarkerWriter(Protocol):
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
        """Appends a marker. KafkaError: UNKNOWN_TOPIC_OR_PARTITION if the partition is gone, or why it was refused."""


class TransactionCompletion:
    """Completes decided transactions, now or as soon as the storage allows."""

    def __init__(self, store: TransactionStore, timer: Timer, markers: MarkerWriter, coordinator_epoch: int) -> None:
        self._store = store
        self._timer = timer
        self._markers = markers
        self._coordinator_epoch = coordinator_epoch
        self._waiting: set[str] = set()
        self._retry: TimerHandle | None = None

    def complete(self, transactional_id: str) -> None:
        """Writes the markers that are missing and then the Complete record. What fails is tried again later."""
        is_retry = transactional_id in self._waiting
        self._waiting.add(transactional_id)
        try:
            if self._try(transactional_id, is_retry):
                self._waiting.discard(transactional_id)
                if is_retry:
                    log.info("transaction complete at last", transactional_id=transactional_id)
        finally:
            if self._waiting and self._retry is None:
                self._retry = self._timer.call_later(RETRY_MS, self._retry_all)

    def stop(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _retry_all(self) -> None:
        self._retry = None
        for transactional_id in sorted(self._waiting):
            self.complete(transactional_id)

    def _try(self, transactional_id: str, is_retry: bool) -> bool:
        """Whether it is complete. Only the first failure is logged, or a full disk would fill it further."""
        metadata = self._store.get(transactional_id)
        if metadata is None or not metadata.state.is_prepared:
            return True
        for topic, partition in sorted(metadata.partitions):
            if self._write(metadata, topic, partition, is_retry):
                metadata = metadata.without((topic, partition))
                self._store.remember(metadata)
        if metadata.partitions:
            return False
        try:
            self._store.append(metadata.complete(self._timer.now_ms()))
        except KafkaError as error:
            if not is_retry:
                log.warning("transaction not complete yet", transactional_id=transactional_id, reason=str(error))
            return False
        return True

    def _write(self, metadata: TransactionMetadata, topic: str, partition: int, is_retry: bool) -> bool:
        """Whether the partition is done with."""
        try:
            self._markers.write_marker(
                topic,
                partition,
                metadata.producer_id,
                metadata.producer_epoch,
                self._coordinator_epoch,
                metadata.state is TransactionState.PREPARE_COMMIT,
                metadata.client_transaction_version,
            )
        except KafkaError as error:
            done = error.code in NOTHING_TO_END
            if done or not is_retry:
                log.warning(
                    "partition needs no marker any more" if done else "partition has no marker yet",
                    transactional_id=metadata.transactional_id,
                    partition=f"{topic}-{partition}",
                    reason=str(error),
                )
            return done
        return True

"""What the coordinator knows of one transactional id, and every change it can undergo.

`TransactionMetadata` is an immutable value: a change is a new value, which the coordinator first appends to its log and
then puts in the place of the old one, so memory is never ahead of the disk and a failed append needs no undoing.

Epochs. A producer id has the epochs 0..32766 for clients; 32767 is kept so that the last client can still be fenced.
Where the epochs run out, the transactional id gets a new producer id and starts at epoch 0. With transactions v2
every end of a transaction bumps the epoch; if that uses up the last one, the new producer id waits in
`next_producer_id` while the markers are written under the old one, and takes its place when they are.

`last_producer_epoch` (what a retried InitProducerId may still name) is not in the log, as in Kafka: such a retry across
a restart is fenced.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from millstream.broker.transactions.states import TRANSITIONS, TransactionState
from millstream.wire.errors import ErrorCode, KafkaError

LATEST_TRANSACTION_VERSION: Final = 2
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = 32_767
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
NO_TIMESTAMP: Final = -1
NO_TIMEOUT: Final = 2_147_483_647
"""The timeout of a transaction that takes part in a two-phase commit: it is never timed out."""

TopicPartition = tuple[str, int]


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def supports_epoch_bump(transaction_version: int) -> bool:
    """Transactions v2: the epoch is bumped at the end of every transaction."""
    return transaction_version >= 2


def is_epoch_exhausted(epoch: int) -> bool:
    return epoch >= LAST_CLIENT_EPOCH


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    client_transaction_version: int = 0

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    def is_timed_out(self, now_ms: int) -> bool:
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != NO_TIMEOUT
            and self.start_ms + self.timeout_ms < now_ms
        )

    def increment_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionMetadata:
        """A new instance of the producer, or (with an expected epoch) the same one after an error: KIP-360."""
        if self.is_epoch_exhausted:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the epochs of producer {self.producer_id} are used up")
        if expected_epoch is None:
            epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        elif expected_epoch == self.last_producer_epoch:
            # The response to the same request was lost. Nobody else can have come in between: that would have
            # cleared the last epoch.
            epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        else:
            raise KafkaError(
                ErrorCode.PRODUCER_FENCED,
                f"the producer of {self.transactional_id} expected the epoch {expected_epoch}, "
                f"but it is {self.producer_epoch}",
            )
        return self._initialized(
            producer_epoch=epoch, last_producer_epoch=last_epoch, timeout_ms=timeout_ms, last_update_ms=now_ms
        )

    def rotate_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keep_last_epoch: bool
    ) -> TransactionMetadata:
        """The epochs are used up: go on under a new producer id."""
        return self._initialized(
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if keep_last_epoch else NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
        )

    def add_partitions(
        self, partitions: Collection[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> TransactionMetadata:
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions | frozenset(partitions),
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def prepare_end(
        self,
        state: TransactionState,
        client_transaction_version: int,
        now_ms: int,
        *,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> TransactionMetadata:
        """Decides the transaction: `state` is PREPARE_COMMIT or PREPARE_ABORT."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if supports_epoch_bump(client_transaction_version):
            epoch, last_epoch = min(epoch + 1, MAX_EPOCH), epoch
        return self._to(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            # An abort without partitions has never started; its start is its end.
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_transaction_version=client_transaction_version,
        )

    def fence(self) -> TransactionMetadata:
        """Transactions v1: bumps the epoch within the ongoing transaction, so that its producer is shut out."""
        return self._replace(
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH), last_producer_epoch=NO_PRODUCER_EPOCH
        )

    def complete(self, now_ms: int) -> TransactionMetadata:
        """All markers are written."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        rotates = supports_epoch_bump(self.client_transaction_version) and self.next_producer_id != NO_PRODUCER_ID
        return self._to(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )

    def without(self, partition: TopicPartition) -> TransactionMetadata:
        """The partition has its marker."""
        return self._replace(partitions=self.partitions - {partition})

    def _initialized(self, **changes: Any) -> TransactionMetadata:
        return self._to(TransactionState.EMPTY, partitions=frozenset(), start_ms=NO_TIMESTAMP, **changes)

    def _to(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"{self.transactional_id}: no way from {self.state.text} to {state.text}")
        return self._replace(state=state, previous_producer_id=self.producer_id, **changes)

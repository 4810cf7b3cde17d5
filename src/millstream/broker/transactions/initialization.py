"""What InitProducerId does to a transactional id: a decision without side effects, apart from taking a new producer id.

    state             answer
    Empty, Complete*  the epoch bumped; a new producer id where the epochs are used up
    Ongoing           the transaction of the earlier instance is fenced off and aborted, and the client is told
                      CONCURRENT_TRANSACTIONS: its next try finds CompleteAbort
    Prepare*          CONCURRENT_TRANSACTIONS, until the markers are written

A producer that names its producer id and epoch (KIP-360: the same instance, recovering from an error) is fenced unless
it is the current one, or repeats the request that made its producer id the previous one.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.broker.transactions.metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TransactionMetadata,
    is_epoch_exhausted,
    supports_epoch_bump,
)
from millstream.broker.transactions.states import TransactionState
from millstream.wire.errors import ErrorCode, KafkaError


def initialize(
    metadata: TransactionMetadata,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    now_ms: int,
    next_producer_id: Callable[[], int],
) -> TransactionMetadata | None:
    """The state to write, or None where an ongoing transaction has to be aborted first."""
    if metadata.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is not complete yet")
    if expected is not None and not _is_known(metadata, expected):
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"{metadata.transactional_id} belongs to producer {metadata.producer_id}, not to {expected.producer_id}",
        )
    if metadata.state is TransactionState.ONGOING:
        return None
    if metadata.is_epoch_exhausted and (expected is None or expected.producer_epoch == metadata.producer_epoch):
        return metadata.rotate_producer_id(next_producer_id(), timeout_ms, now_ms, keep_last_epoch=expected is not None)
    return metadata.increment_epoch(timeout_ms, None if expected is None else expected.producer_epoch, now_ms)


def _is_known(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.previous_producer_id and is_epoch_exhausted(expected.producer_epoch))
    )


def fence_and_abort(
    metadata: TransactionMetadata, transaction_version: int, now_ms: int, next_producer_id: Callable[[], int]
) -> TransactionMetadata:
    """An ongoing transaction, decided to be aborted over its producer's head: that producer's epoch is over.

    Nobody is told the bumped epoch, so the server's transaction version counts here, not the client's.
    """
    if not supports_epoch_bump(transaction_version):
        return metadata.fence().prepare_end(TransactionState.PREPARE_ABORT, 0, now_ms)
    return metadata.prepare_end(
        TransactionState.PREPARE_ABORT,
        transaction_version,
        now_ms,
        next_producer_id=next_producer_id() if metadata.is_epoch_exhausted else NO_PRODUCER_ID,
    )

"""What EndTxn does to a transactional id, in both protocols: decisions without side effects.

Both answer CONCURRENT_TRANSACTIONS while the markers of the transaction are being written, and decide an ongoing
transaction. They differ in what a second EndTxn means.

Transactions v1 (EndTxn 0-4). The epoch stays, so the state alone tells a retry: the same outcome once more is fine.

    state           abort              commit
    Empty           INVALID_TXN_STATE  INVALID_TXN_STATE
    CompleteAbort   fine               INVALID_TXN_STATE
    CompleteCommit  INVALID_TXN_STATE  fine

Transactions v2 (EndTxn 5+, KIP-890). Each end bumps the epoch, so a retry is known by carrying the epoch before; it is
answered with the bumped one. With the current epoch it is the end of a transaction that has no partitions yet: the
client may not know whether its records arrived, so it may abort (and gets a new epoch), but it cannot commit.

    state           abort: retry       current epoch   commit: retry      current epoch
    Empty           PRODUCER_FENCED    aborted         PRODUCER_FENCED    INVALID_TXN_STATE
    CompleteAbort   fine               aborted         INVALID_TXN_STATE  INVALID_TXN_STATE
    CompleteCommit  INVALID_TXN_STATE  aborted         fine               INVALID_TXN_STATE

When the bump used up the epochs, the retry carries the previous producer id and its last epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.broker.transactions.metadata import (
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from millstream.broker.transactions.states import TransactionState
from millstream.wire.errors import ErrorCode, KafkaError

_S = TransactionState


def end_v1(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, committed: bool, now_ms: int
) -> TransactionMetadata | None:
    """The state to write, or None if the transaction has ended this way already."""
    if producer.producer_id != metadata.producer_id:
        raise _unmapped(metadata, producer)
    if producer.producer_epoch != metadata.producer_epoch:
        raise _fenced(metadata, producer)
    if metadata.state.is_prepared:
        raise _concurrent()
    if metadata.state is _S.ONGOING:
        return metadata.prepare_end(_prepared(committed), 0, now_ms)
    if metadata.state is (_S.COMPLETE_COMMIT if committed else _S.COMPLETE_ABORT):
        return None
    raise _invalid(metadata, committed)


def end_v2(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    committed: bool,
    transaction_version: int,
    now_ms: int,
    next_producer_id: Callable[[], int],
) -> TransactionMetadata | None:
    """The state to write, or None for a retry, whose answer is the current producer id and epoch."""
    # Before anything else: while the producer id is being rotated the client may already use the new one.
    if metadata.state.is_prepared:
        raise _concurrent()
    overflowed = producer == (metadata.previous_producer_id, LAST_CLIENT_EPOCH) and metadata.producer_epoch == 0
    is_current = producer.producer_epoch == metadata.producer_epoch
    is_retry = overflowed or producer.producer_epoch + 1 == metadata.producer_epoch
    if producer.producer_id != metadata.producer_id and not overflowed:
        raise _unmapped(metadata, producer)
    if not is_current and (not is_retry or metadata.state in (_S.ONGOING, _S.EMPTY)):
        raise _fenced(metadata, producer)
    if is_retry:
        if metadata.state is (_S.COMPLETE_COMMIT if committed else _S.COMPLETE_ABORT):
            return None
        raise _invalid(metadata, committed)
    if metadata.state is not _S.ONGOING and committed:
        raise _invalid(metadata, committed)
    return metadata.prepare_end(
        _prepared(committed),
        transaction_version,
        now_ms,
        next_producer_id=next_producer_id() if metadata.is_epoch_exhausted else NO_PRODUCER_ID,
    )


def _prepared(committed: bool) -> TransactionState:
    return _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT


def _unmapped(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{metadata.transactional_id} belongs to producer {metadata.producer_id}, not to {producer.producer_id}",
    )


def _fenced(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"the epoch of {metadata.transactional_id} is {metadata.producer_epoch}, not {producer.producer_epoch}",
    )


def _concurrent() -> KafkaError:
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the markers of the transaction are still being written")


def _invalid(metadata: TransactionMetadata, committed: bool) -> KafkaError:
    outcome = "committed" if committed else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE, f"{metadata.transactional_id} is {metadata.state.text} and cannot be {outcome}"
    )

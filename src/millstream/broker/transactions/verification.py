"""May a transactional batch (Produce) or offset commit (TxnOffsetCommit) be appended, and which error says that it
may not? KIP-890.

A partition must be part of the ongoing transaction before anything of that transaction is written to it, or a record
that arrives late could be left without a marker for ever. What a client supports follows from the version it speaks:

    operation                Produce  TxnOffsetCommit   a partition that is not in the transaction
    DEFAULT_ERROR            0-10     0-3               INVALID_TXN_STATE
    GENERIC_ERROR_SUPPORTED  11       4                 TRANSACTION_ABORTABLE
    ADD_PARTITION            12+      5+                is added to it (transactions v2)

A fenced producer is told INVALID_PRODUCER_EPOCH, the error that producers expect at this place.
"""

from __future__ import annotations

from enum import Enum

from millstream.wire.errors import ErrorCode


class TransactionSupportedOperation(Enum):
    DEFAULT_ERROR = 0
    GENERIC_ERROR_SUPPORTED = 1
    ADD_PARTITION = 2


def operation_of_produce(api_version: int) -> TransactionSupportedOperation:
    return _operation(api_version, 11)


def operation_of_txn_offset_commit(api_version: int) -> TransactionSupportedOperation:
    return _operation(api_version, 4)


def _operation(api_version: int, generic_error_version: int) -> TransactionSupportedOperation:
    if api_version > generic_error_version:
        return TransactionSupportedOperation.ADD_PARTITION
    if api_version == generic_error_version:
        return TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
    return TransactionSupportedOperation.DEFAULT_ERROR


def error_for_client(code: ErrorCode, *, knows_fencing: bool) -> ErrorCode:
    """The coordinator's answer to its own client; old ones know PRODUCER_FENCED by its old name only (KIP-588)."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED and not knows_fencing else code


def error_for_writer(code: ErrorCode, operation: TransactionSupportedOperation) -> ErrorCode:
    """The coordinator's answer in words that the writer of that version understands."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is TransactionSupportedOperation.DEFAULT_ERROR:
        return ErrorCode.INVALID_TXN_STATE
    return code


def error_for_producer(code: ErrorCode, operation: TransactionSupportedOperation) -> ErrorCode:
    """The same for Produce, where coordinator errors become one that older clients retry without new metadata."""
    if code in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and operation is not TransactionSupportedOperation.ADD_PARTITION:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error_for_writer(code, operation)

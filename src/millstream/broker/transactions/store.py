"""All transactional ids in memory, and `__transaction_state` behind them.

`append` writes first and remembers then; if the write fails, nothing has changed. Errors of the log are translated to
what a client of a coordinator expects: a broken disk is NOT_COORDINATOR (look for another one, try again), anything
that a moment may cure is COORDINATOR_NOT_AVAILABLE. `load` replays the same records; one that cannot be read is passed
over with an error in the server's log, so that the other transactional ids are served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from millstream.broker.coordinator_log import CoordinatorLog, KeyValue, ReplayedRecords
from millstream.broker.transactions.metadata import TransactionMetadata
from millstream.broker.transactions.records import decode_record, encode_key, encode_record
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError

log = get_logger(__name__)

_TRANSLATED: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_TOMBSTONE_BATCH_BYTES: Final = 512 * 1024
_TOMBSTONE_OVERHEAD: Final = 16
"""Bytes a record without value takes beside its key, at most."""


class TransactionStore:
    def __init__(self, coordinator_log: CoordinatorLog, transaction_version: Callable[[], int]) -> None:
        self._log = coordinator_log
        self._transaction_version = transaction_version
        self._transactions: dict[str, TransactionMetadata] = {}

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return iter(list(self._transactions.values()))

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        return self._transactions.get(transactional_id)

    def append(self, metadata: TransactionMetadata) -> None:
        """Makes `metadata` the state of its transactional id. KafkaError, and no change, if the log refuses."""
        partition = self._log.partition_for(metadata.transactional_id)
        try:
            self._log.append(partition, [encode_record(metadata, self._transaction_version())])
        except KafkaError as error:
            raise KafkaError(_TRANSLATED.get(error.code, error.code), error.message) from error
        self._transactions[metadata.transactional_id] = metadata

    def remember(self, metadata: TransactionMetadata) -> None:
        """A change that is not worth a record: it would be found out again after a crash."""
        self._transactions[metadata.transactional_id] = metadata

    def remove(self, transactional_ids: Iterable[str]) -> None:
        """Writes a tombstone for each and forgets it, batch by batch. KafkaError: the rest is still there."""
        batches: dict[int, list[str]] = {}
        sizes: dict[int, int] = {}
        for transactional_id in transactional_ids:
            partition = self._log.partition_for(transactional_id)
            size = len(encode_key(transactional_id)) + _TOMBSTONE_OVERHEAD
            if sizes.get(partition, 0) + size > _TOMBSTONE_BATCH_BYTES:
                self._bury(partition, batches.pop(partition))
                sizes[partition] = 0
            batches.setdefault(partition, []).append(transactional_id)
            sizes[partition] = sizes.get(partition, 0) + size
        for partition, batch in batches.items():
            self._bury(partition, batch)

    def _bury(self, partition: int, transactional_ids: list[str]) -> None:
        self._log.append(partition, [KeyValue(encode_key(each), None) for each in transactional_ids])
        for each in transactional_ids:
            del self._transactions[each]

    def load(self, partitions: Iterable[int]) -> None:
        """Replays the partitions of the log from the start."""
        for partition in partitions:
            for entry in self._log.replay(partition):
                if isinstance(entry, ReplayedRecords):
                    for record in entry.records:
                        self._replay(record)

    def _replay(self, record: KeyValue) -> None:
        try:
            decoded = decode_record(record)
        except ValueError as error:
            log.error("passed over an unreadable record", topic=self._log.topic, reason=str(error))
            return
        if decoded is None:
            log.warning("passed over a record of an unknown version", topic=self._log.topic)
            return
        transactional_id, metadata = decoded
        if metadata is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = metadata

"""What a log knows of its idempotent and transactional producers.

For each producer id: epoch, the last five batches (sequences and offsets), the coordinator epoch of its last marker and
the first offset of its open transaction. An append is checked first (`check_batch`, `check_marker`: nothing changes)
and applied after it was written (`apply_batch`, `apply_marker`), so a write that fails leaves no trace here.

Rules, as Kafka has them: a batch whose epoch and sequences equal one of the last five is a duplicate and is answered
with that one's offsets; an older epoch is INVALID_PRODUCER_EPOCH; a new epoch begins with sequence 0; otherwise the
sequence follows the last one (wrapping from 2^31 - 1 to 0) or is OUT_OF_ORDER_SEQUENCE_NUMBER. A marker of transaction
version 2 carries an epoch that was bumped for it, so it must be greater than the last one seen.

Snapshots, `<offset, 20 digits>.snapshot`, hold the state before that offset, big-endian:

    version int16 (1) | crc uint32 (Castagnoli, of all behind it) | count int32
    (producer id int64 | epoch int16 | last sequence int32 | last offset int64 | offset delta int32 | timestamp int64
     | coordinator epoch int32 | first offset of the open transaction int64, -1 if none)*

One is written when a segment is rolled (at its base offset) and when the log is closed; recovery takes the newest sound
one and replays the batches behind it. Of the five batches only the last is in it, as in Kafka.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from millstream.wire.batches import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    EndTxnMarker,
)
from millstream.wire.errors import ErrorCode, KafkaError

SNAPSHOT_SUFFIX: Final = ".snapshot"
BATCHES_KEPT: Final = 5
NO_TRANSACTION: Final = -1
DEFAULT_EXPIRATION_MS: Final = 86_400_000

_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEADER: Final = Struct(">hIi")
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_START: Final = 6
_MAX_EPOCH: Final = 0x7FFF


class BatchMetadata(NamedTuple):
    """One of the last five batches of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.txn_first_offset = NO_TRANSACTION
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def set_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.batches.clear()
            self.epoch = epoch

    def add_batch(self, batch: BatchMetadata) -> None:
        if len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class OngoingTransaction(NamedTuple):
    """An open transaction and where its first batch lies, if that is known (-1, -1 if not)."""

    producer_id: int
    segment_base_offset: int
    position: int


_UNKNOWN_POSITION: Final = -1


class ProducerState:
    __slots__ = ("_completed", "entries", "expiration_ms", "name", "ongoing")

    def __init__(self, name: str, expiration_ms: int = DEFAULT_EXPIRATION_MS) -> None:
        self.name = name
        self.expiration_ms = expiration_ms
        self.entries: dict[int, ProducerEntry] = {}
        # By first offset, ascending: transactions begin in the order of the log.
        self.ongoing: dict[int, OngoingTransaction] = {}
        # Ended, but the marker (value) is not below the high watermark yet.
        self._completed: dict[int, int] = {}

    # --- checks

    def check_batch(
        self, header: BatchHeader, offset: int, *, client: bool, verified: bool, supports_epoch_bump: bool
    ) -> BatchMetadata | None:
        """May this batch be appended at `offset`? Returns the batch it is a duplicate of, if it is one."""
        entry = self.entries.get(header.producer_id)
        epoch = header.producer_epoch
        transactional = header.is_transactional
        if client and entry is not None and entry.epoch == epoch:
            first = header.base_sequence
            if first == entry.last_sequence + 1 and not transactional and entry.txn_first_offset == NO_TRANSACTION:
                return None  # the next one, as nearly always
            last = header.last_sequence
            for batch in entry.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has the epoch {entry.epoch} in {self.name}, not {epoch} any more",
            )
        ongoing = entry is not None and entry.txn_first_offset != NO_TRANSACTION
        if transactional and not verified and not (ongoing and entry is not None and entry.epoch == epoch):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"the batch belongs to no ongoing transaction in {self.name}")
        if client:
            self._check_sequence(entry, header, offset, supports_epoch_bump=supports_epoch_bump)
        if ongoing and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction in {self.name}, the batch is not transactional",
            )
        return None

    def _check_sequence(
        self, entry: ProducerEntry | None, header: BatchHeader, offset: int, *, supports_epoch_bump: bool
    ) -> None:
        sequence = header.base_sequence
        if entry is None:
            if supports_epoch_bump and sequence != 0:
                raise self._out_of_order(header, offset, "0, there is no state of this producer")
            return
        if supports_epoch_bump and sequence != 0 and not entry.batches:
            raise self._out_of_order(header, offset, "0, there is no batch of this producer")
        if header.producer_epoch != entry.epoch:
            if sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(header, offset, f"0, the epoch is new (last one {entry.epoch})")
            return
        last = entry.last_sequence
        if sequence != last + 1 and not (sequence == 0 and last == MAX_SEQUENCE):
            raise self._out_of_order(header, offset, f"the one after {last}")

    def _out_of_order(self, header: BatchHeader, offset: int, expected: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent the sequence {header.base_sequence} in epoch {header.producer_epoch} "
            f"for offset {offset} of {self.name}; expected {expected}",
        )

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """May a marker of this producer and coordinator be appended?"""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        current = entry.epoch
        if transaction_version >= 2:
            stale = producer_epoch <= current
            if producer_epoch == current and (entry.txn_first_offset == NO_TRANSACTION or current == _MAX_EPOCH):
                stale = False  # the marker is written once more: its transaction is over already
        else:
            stale = producer_epoch < current
        if stale:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"the marker of producer {producer_id} has the epoch {producer_epoch}, {self.name} has seen {current}",
            )
        if entry.coordinator_epoch > coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the marker of producer {producer_id} has the coordinator epoch {coordinator_epoch}, "
                f"{self.name} has seen {entry.coordinator_epoch}",
            )

    # --- changes, after the write

    def apply_batch(
        self, header: BatchHeader, base_offset: int, max_timestamp: int, segment_base_offset: int, position: int
    ) -> None:
        """A batch of records was written at `base_offset`."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        entry.set_epoch(header.producer_epoch)
        entry.add_batch(
            BatchMetadata(
                header.base_sequence,
                header.last_sequence,
                base_offset,
                base_offset + header.last_offset_delta,
                max_timestamp,
            )
        )
        if header.is_transactional and entry.txn_first_offset == NO_TRANSACTION:
            entry.txn_first_offset = base_offset
            self.ongoing[base_offset] = OngoingTransaction(producer_id, segment_base_offset, position)

    def apply_marker(
        self, producer_id: int, producer_epoch: int, marker: EndTxnMarker, offset: int, timestamp: int
    ) -> CompletedTransaction | None:
        """A marker was written at `offset`. Returns the transaction it ended, if one was open."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        first_offset = entry.txn_first_offset
        entry.set_epoch(producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        entry.txn_first_offset = NO_TRANSACTION
        if first_offset == NO_TRANSACTION:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, not marker.commit)

    def complete(self, transaction: CompletedTransaction) -> int:
        """The transaction is over. Returns the last stable offset its entry in the transaction index carries."""
        self.ongoing.pop(transaction.first_offset, None)
        self._completed[transaction.first_offset] = transaction.last_offset
        return next(iter(self.ongoing), transaction.last_offset + 1)

    @property
    def has_transactions(self) -> bool:
        """Whether there are open ones, or ended ones that are not visible yet."""
        return bool(self.ongoing or self._completed)

    def on_high_watermark(self, high_watermark: int) -> None:
        if self._completed:
            self._completed = {first: last for first, last in self._completed.items() if last >= high_watermark}

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open (or not yet visibly ended) transaction."""
        ongoing = next(iter(self.ongoing), None)
        if not self._completed:
            return ongoing
        completed = min(self._completed)
        return completed if ongoing is None else min(ongoing, completed)

    def expire(self, now: int) -> list[int]:
        """Forget the producers that have been silent for producer.id.expiration.ms and have no open transaction."""
        expired = [entry.producer_id for entry in self.entries.values() if self._is_expired(entry, now)]
        for producer_id in expired:
            del self.entries[producer_id]
        return expired

    def _is_expired(self, entry: ProducerEntry, now: int) -> bool:
        return entry.txn_first_offset == NO_TRANSACTION and now - entry.last_timestamp >= self.expiration_ms

    def forget_positions(self) -> None:
        """Segments were replaced: where the open transactions begin is to be looked up again."""
        for first_offset, transaction in self.ongoing.items():
            self.ongoing[first_offset] = OngoingTransaction(
                transaction.producer_id, _UNKNOWN_POSITION, _UNKNOWN_POSITION
            )

    def clear(self) -> None:
        self.entries.clear()
        self.ongoing.clear()
        self._completed.clear()

    # --- snapshots

    def encode(self) -> bytes:
        """The snapshot file's content."""
        parts = [_SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, 0, len(self.entries))[_CRC_START:]]
        for entry in self.entries.values():
            last = entry.batches[-1] if entry.batches else None
            parts.append(
                _SNAPSHOT_ENTRY.pack(
                    entry.producer_id,
                    entry.epoch,
                    NO_SEQUENCE if last is None else last.last_sequence,
                    -1 if last is None else last.last_offset,
                    0 if last is None else last.last_offset - last.first_offset,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.txn_first_offset,
                )
            )
        covered = b"".join(parts)
        return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, crc32c(covered), 0)[:_CRC_START] + covered

    def load(self, data: bytes, now: int) -> bool:
        """Take over a snapshot. False, and nothing changed, if it is not sound."""
        entries = _decode_snapshot(data)
        if entries is None:
            return False
        self.clear()
        for entry in entries:
            if not self._is_expired(entry, now):
                self.entries[entry.producer_id] = entry
        open_transactions = [entry for entry in self.entries.values() if entry.txn_first_offset != NO_TRANSACTION]
        for entry in sorted(open_transactions, key=lambda entry: entry.txn_first_offset):
            self.ongoing[entry.txn_first_offset] = OngoingTransaction(
                entry.producer_id, _UNKNOWN_POSITION, _UNKNOWN_POSITION
            )
        return True


def _decode_snapshot(data: bytes) -> Iterable[ProducerEntry] | None:
    if len(data) < _SNAPSHOT_HEADER.size:
        return None
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    body = data[_SNAPSHOT_HEADER.size :]
    if version != _SNAPSHOT_VERSION or len(body) != count * _SNAPSHOT_ENTRY.size:
        return None
    if crc32c(data[_CRC_START:]) != crc:
        return None
    entries: list[ProducerEntry] = []
    for fields in _SNAPSHOT_ENTRY.iter_unpack(body):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = fields
        entry = ProducerEntry(producer_id)
        entry.epoch = epoch
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.txn_first_offset = first_offset
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & MAX_SEQUENCE
            entry.batches.append(
                BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            )
        entries.append(entry)
    return entries

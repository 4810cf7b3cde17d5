"""A transaction coordinator on a manual timer, an in-memory log and partitions that only remember their markers.

`Harness.crash()` is a kill -9: what is in the log stays, everything else is gone; the new coordinator has loaded it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from millstream.broker.transactions.config import TransactionConfig
from millstream.broker.transactions.coordinator import TransactionCoordinator
from millstream.broker.transactions.metadata import ProducerIdAndEpoch, TopicPartition, TransactionMetadata
from millstream.broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from millstream.broker.transactions.records import encode_record
from millstream.wire.errors import ErrorCode, KafkaError
from support.manual_timer import ManualTimer
from support.memory_coordinator_log import MemoryCoordinatorLog

TRANSACTION_TOPIC = "__transaction_state"


class Marker(NamedTuple):
    partition: TopicPartition
    producer: ProducerIdAndEpoch
    committed: bool
    transaction_version: int = 2
    coordinator_epoch: int = 0


class RecordingMarkers:
    """Implements `MarkerWriter`. `failing` maps a partition to the error it answers with."""

    def __init__(self) -> None:
        self.written: list[Marker] = []
        self.failing: dict[TopicPartition, ErrorCode] = {}

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
        where = (topic, partition)
        if where in self.failing:
            raise KafkaError(self.failing[where], "as the test wants it")
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        self.written.append(Marker(where, producer, committed, transaction_version, coordinator_epoch))

    def take(self) -> list[Marker]:
        """What was written since the last call."""
        written, self.written = self.written, []
        return written


class ProducerIdBlocks:
    """The metadata store's part: reserves blocks durably."""

    def __init__(self) -> None:
        self.next_start = 0

    def reserve(self) -> range:
        start = self.next_start
        self.next_start += BLOCK_SIZE
        return range(start, self.next_start)


class Harness:
    def __init__(self, config: TransactionConfig | None = None, transaction_version: int = 2) -> None:
        self.timer = ManualTimer()
        self.log = MemoryCoordinatorLog(TRANSACTION_TOPIC, 3, self.timer)
        self.markers = RecordingMarkers()
        self.blocks = ProducerIdBlocks()
        self.config = config or TransactionConfig()
        self.transaction_version = transaction_version
        self.coordinator = self._start()

    def _start(self) -> TransactionCoordinator:
        ids = ProducerIds(self.blocks.reserve)
        coordinator = TransactionCoordinator(
            self.log,
            self.timer,
            ids,
            self.markers,
            self.config,
            transaction_version=lambda: self.transaction_version,
        )
        coordinator.load()
        coordinator.start()
        return coordinator

    def crash(self) -> None:
        self.coordinator.stop()
        self.coordinator = self._start()

    def plant(self, metadata: TransactionMetadata) -> None:
        """Makes this the state of its transactional id, as if a coordinator had written it, and restarts."""
        self.log.append(
            self.log.partition_for(metadata.transactional_id),
            [encode_record(metadata, self.transaction_version)],
        )
        self.crash()

    def init(
        self, transactional_id: str = "t", expected: ProducerIdAndEpoch | None = None, timeout_ms: int = 60_000
    ) -> ProducerIdAndEpoch:
        return self.coordinator.init_producer_id(transactional_id, timeout_ms, expected)

    def add(
        self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, transactional_id: str = "t", version: int = 2
    ) -> None:
        self.coordinator.add_partitions(transactional_id, *producer, partitions, version)

    def end(
        self, producer: ProducerIdAndEpoch, committed: bool = True, *, transactional_id: str = "t", version: int = 2
    ) -> ProducerIdAndEpoch:
        return self.coordinator.end_txn(transactional_id, *producer, committed, version)

    def state(self, transactional_id: str = "t") -> TransactionMetadata:
        return self.coordinator.describe_transaction(transactional_id)


def error_of(call: Callable[[], object]) -> ErrorCode:
    """The code that the call is refused with; NONE if it is not."""
    try:
        call()
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE

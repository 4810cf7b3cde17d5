"""From `__consumer_offsets` back to groups and offsets: the replay at start.

Most of the topic are offsets that were committed again a moment later, in segments that the cleaner has not come to
yet. So a regular offset commit is only kept as bytes under its key, and what is kept is decoded and applied when its
order begins to matter: before anything of a transaction, and at the end. A tombstone is applied at once, because it
also ends what is pending, whatever is committed after it. Memory is bounded by the number of different offsets, which
the store needs anyway.

Records of unknown types are passed over. A group that the log deleted without deleting all its offsets is a simple
consumer's again, so that they expire.
"""

from __future__ import annotations

from millstream.broker.coordinator_log import CoordinatorLog, KeyValue, ReplayedMarker
from millstream.broker.groups import records
from millstream.broker.groups.classic import ClassicGroups
from millstream.broker.groups.consumer_groups import ConsumerGroups
from millstream.broker.groups.offsets import Offsets
from millstream.logs import get_logger
from millstream.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

_OFFSET_COMMIT = OffsetCommitKey.API_KEY.to_bytes(2, "big")

log = get_logger(__name__)


class LogReplay:
    """Replays partitions into the three holders of state."""

    def __init__(
        self, source: CoordinatorLog, classic: ClassicGroups, consumer: ConsumerGroups, offsets: Offsets
    ) -> None:
        self._source = source
        self._classic = classic
        self._consumer = consumer
        self._offsets = offsets
        self._latest: dict[bytes, tuple[int, KeyValue]] = {}

    def replay(self, partition: int) -> None:
        for entry in self._source.replay(partition):
            if isinstance(entry, ReplayedMarker):
                self._apply_latest(partition)
                self._offsets.store.end_transaction(partition, entry.producer.producer_id, committed=entry.committed)
            elif entry.producer is not None:
                self._apply_latest(partition)
                for index, record in enumerate(entry.records):
                    self._apply(partition, entry.base_offset + index, record, entry.producer.producer_id)
            else:
                for index, record in enumerate(entry.records):
                    if record.value is not None and record.key.startswith(_OFFSET_COMMIT):
                        self._latest[record.key] = (entry.base_offset + index, record)
                    else:
                        self._latest.pop(record.key, None)
                        self._apply(partition, entry.base_offset + index, record, None)
        self._apply_latest(partition)

    def _apply_latest(self, partition: int) -> None:
        for offset, record in self._latest.values():
            self._apply(partition, offset, record, None)
        self._latest.clear()

    def _apply(self, partition: int, offset: int, record: KeyValue, producer_id: int | None) -> None:
        decoded = records.decode_record(record)
        if decoded is None:
            log.warning("record of an unknown type", topic=self._source.topic, partition=partition, offset=offset)
            return
        key, value = decoded
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._offsets.replay(partition, offset, key, value, producer_id)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self._classic.replay(key, value)
        else:
            self._consumer.replay(key, value)

"""The coordinators' logs on real partitions: `__consumer_offsets` and `__transaction_state`.

Records are written as one uncompressed batch for each call, as a coordinator's append to its own topic, and read back
in replay with the same batch layer that serves clients. The topic is made when somebody first asks for its partition
count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from millstream.broker.coordinator_log import (
    KeyValue,
    Producer,
    ReplayedMarker,
    ReplayedRecords,
    partition_for_key,
)
from millstream.log.append import AppendOrigin
from millstream.log.flush import GroupCommit
from millstream.wire.batches import BatchHeader, Record, build_batch, iterate_headers, read_marker, read_records
from millstream.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from millstream.broker.timer import Timer
    from millstream.broker.topics import Partition, Topics

REPLAY_CHUNK_BYTES = 1 << 20


class InternalTopicLog:
    """A `CoordinatorLog` on one internal topic."""

    def __init__(self, name: str, topics: Topics, timer: Timer, group_commit: GroupCommit) -> None:
        self._name = name
        self._topics = topics
        self._timer = timer
        self._group_commit = group_commit

    @property
    def topic(self) -> str:
        return self._name

    def partition_count(self) -> int:
        topic = self._topics.get(self._name) or self._topics.create_internal(self._name)
        return len(topic.partitions)

    def partition_for(self, key: str) -> int:
        return partition_for_key(key, self.partition_count())

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None = None) -> int:
        target = self._partition(partition)
        now = self._timer.now_ms()
        batch = build_batch(
            [Record(offset, now, key, value) for offset, (key, value) in enumerate(records)],
            producer_id=producer.producer_id if producer else -1,
            producer_epoch=producer.producer_epoch if producer else -1,
            base_sequence=0 if producer else -1,
            transactional=producer is not None,
        )
        info = target.log.append(batch, origin=AppendOrigin.COORDINATOR, leader_epoch=target.leader_epoch)
        if info.flush_needed:
            self._group_commit.request(target.log, lambda error: None)
        return info.base_offset

    def replay(self, partition: int) -> Iterator[ReplayedRecords | ReplayedMarker]:
        log = self._partition(partition).log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            data = log.read(offset, REPLAY_CHUNK_BYTES, min_one_message=True).read_all()
            read_any = False
            for position, header in iterate_headers(data):
                read_any = True
                if header.last_offset >= offset:
                    yield from self._replayed(data, position, header)
                    offset = header.next_offset
            if not read_any:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"{self._name}-{partition} has no whole batch at offset {offset}"
                )

    def _replayed(self, data: bytes, position: int, header: BatchHeader) -> Iterator[ReplayedRecords | ReplayedMarker]:
        producer = Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
        if header.is_control:
            marker = read_marker(data, position, header)
            if marker is not None and producer is not None:
                yield ReplayedMarker(producer, marker.commit)
        elif header.record_count:
            records = read_records(data, position, header)
            pairs = [KeyValue(record.key or b"", record.value) for record in records]
            yield ReplayedRecords(records[0].offset, pairs, header.max_timestamp, producer)

    def _partition(self, index: int) -> Partition:
        self.partition_count()
        partition = self._topics.partition(self._name, index)
        if partition is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self._name} has no partition {index}")
        return partition

"""What all kinds of groups share: the table of groups, the log, the timer, the topics and the settings.

Both protocols work on the one table, because a group id means one group: an empty group of one kind gives way to a
group of the other. `append` is the only way records get into `__consumer_offsets`; it turns trouble of the storage into
what a client of the coordinator may be told (KafkaError). State in memory is changed only after it returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from millstream.broker.coordinator_log import CoordinatorLog, KeyValue, Producer
from millstream.broker.groups.config import GroupConfig
from millstream.broker.groups.group import Group, TopicsView
from millstream.broker.timer import Timer
from millstream.wire.errors import ErrorCode, KafkaError

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Why the log refused, and what a client of the coordinator is told: mostly to look for the coordinator again."""

_BATCH_BYTES = 512 * 1024
_RECORD_OVERHEAD = 32


class GroupRuntime:
    """Shared by the classic groups, the consumer groups and the offsets."""

    def __init__(self, log: CoordinatorLog, timer: Timer, topics: TopicsView, config: GroupConfig) -> None:
        self.log = log
        self.timer = timer
        self.topics = topics
        self.config = config
        self.groups: dict[str, Group] = {}

    def append(self, group_id: str, records: Sequence[KeyValue], producer: Producer | None = None) -> int:
        """Writes records of one group as one batch and returns the batch's base offset."""
        try:
            return self.log.append(self.log.partition_for(group_id), records, producer)
        except KafkaError as error:
            _raise_for_client(error)

    def batches(self, records: Iterable[KeyValue]) -> Iterator[list[KeyValue]]:
        """Cuts many records (tombstones of all offsets of a group) into batches that any log takes."""
        batch: list[KeyValue] = []
        size = 0
        for record in records:
            size += len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD
            if batch and size > _BATCH_BYTES:
                yield batch
                batch = []
                size = len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD
            batch.append(record)
        if batch:
            yield batch


def _raise_for_client(error: KafkaError) -> NoReturn:
    raise KafkaError(_APPEND_ERRORS.get(error.code, error.code), str(error)) from error

"""The end of a transaction, written into the partitions it touched.

All partitions live on this node, so what Kafka does with requests between brokers is a function call here: the
transaction coordinator decides, this writes the marker, and for a partition of `__consumer_offsets` the group
coordinator is told, whose pending offsets of that producer become committed ones or are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.topics import GROUP_METADATA_TOPIC
from millstream.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from millstream.broker.groups.coordinator import GroupCoordinator
    from millstream.broker.topics import Topics
    from millstream.log.flush import GroupCommit


class PartitionMarkers:
    """The transaction coordinator's `MarkerWriter`."""

    def __init__(self, topics: Topics, groups: GroupCoordinator, group_commit: GroupCommit) -> None:
        self._topics = topics
        self._groups = groups
        self._group_commit = group_commit

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
        target = self._topics.partition(topic, partition)
        if target is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} has no partition {partition}")
        info = target.log.append_control(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            commit=committed,
            coordinator_epoch=coordinator_epoch,
            leader_epoch=target.leader_epoch,
            transaction_version=transaction_version,
        )
        if info.flush_needed:
            self._group_commit.request(target.log, lambda error: None)
        if topic == GROUP_METADATA_TOPIC:
            self._groups.on_transaction_end(partition, producer_id, committed=committed)

"""Offsets at the target that must hold something so that the next record gets the offset it had at the source.

`Markers` (the default) takes one offset with each transaction marker: an abort marker of a producer that has no
transaction. Consumers skip control records whatever their isolation level; the log cleaner removes them. It needs
ALTER or CLUSTER_ACTION on the target's cluster, as `kafka-transactions.sh abort` does, and one marker takes 78 bytes.
Its timestamp is the broker's time: where there are markers, a look-up by time may answer an earlier offset, and
time-based retention counts from the move.

`filler` is the record that fills offsets visibly: before a partition's first record, where it is deleted at once, and
between records only if that was asked for, because markers are not allowed. It is a tombstone with a reserved key and
header, so that compaction removes it and consumers can tell it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millstream.cluster.answers import refuse
from millstream.cluster.errors import ClusterError
from millstream.cluster.graduation.plan import Partition
from millstream.cluster.graduation.requests import leaders, offsets, send

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

FILLER_KEY = b"millstream.filler"
FILLER_HEADER = "millstream.filler"
MARKERS_IN_A_REQUEST = 5000
_ATTEMPTS = 20
_RETRY_SECONDS = 0.5
_PASSING = {3, 5, 6, 7, 9, 13, 14, 15, 19, 20}
"""Leader moved, time-out, not enough replicas: another attempt may succeed."""


class Markers:
    """Writes markers until partitions end at the wanted offsets."""

    def __init__(self, admin: KafkaAdminClient) -> None:
        self._admin = admin
        self._leaders: dict[Partition, int] = {}
        self._producer: tuple[int, int] | None = None

    def fill(self, wanted: Mapping[Partition, int]) -> None:
        """Every record before must be acknowledged, and nobody else may write."""
        failures = 0
        while True:
            ends = offsets(self._admin, wanted, -1)
            missing = {where: end - ends[where] for where, end in wanted.items() if end != ends[where]}
            if not missing:
                return
            for where, count in missing.items():
                if count < 0:
                    raise ClusterError(
                        f"{where} at the target ends at {ends[where]}, behind {wanted[where]}: somebody else writes "
                        "to this topic. Delete it there and start again"
                    )
            code = self._write(missing)
            if code:
                failures += 1
                if code not in _PASSING or failures == _ATTEMPTS:
                    refuse(f"placeholders in {', '.join(map(str, missing))}", code, None)
                self._leaders.clear()
                time.sleep(_RETRY_SECONDS)

    def _write(self, missing: Mapping[Partition, int]) -> int:
        """One request to each leader; the first error code that comes back."""
        if not missing.keys() <= self._leaders.keys():
            self._leaders.update(leaders(self._admin, (where.topic for where in missing)))
        by_leader: dict[int, dict[Partition, int]] = {}
        for where, count in missing.items():
            by_leader.setdefault(self._leaders[where], {})[where] = count
        for leader, counts in by_leader.items():
            response = send(self._admin, self._request(counts), leader)
            for marker in response.markers:
                for topic in marker.topics:
                    for part in topic.partitions:
                        if part.error_code:
                            return int(part.error_code)
        return 0

    def _request(self, counts: Mapping[Partition, int]) -> Any:
        from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

        producer_id, epoch = self._producer_id()
        marker_class = WriteTxnMarkersRequest.WritableTxnMarker
        markers = []
        room = MARKERS_IN_A_REQUEST
        for index in range(max(counts.values())):
            topics: dict[str, list[int]] = {}
            for where, count in counts.items():
                if index < count:
                    topics.setdefault(where.topic, []).append(where.partition)
                    room -= 1
            markers.append(
                marker_class(
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    transaction_result=False,
                    coordinator_epoch=0,
                    topics=[
                        marker_class.WritableTxnMarkerTopic(name=name, partition_indexes=parts)
                        for name, parts in topics.items()
                    ],
                )
            )
            if room <= 0:
                break
        return WriteTxnMarkersRequest(markers=markers)

    def _producer_id(self) -> tuple[int, int]:
        """A producer id of our own, which no producer has or will have."""
        from kafka.protocol.producer import InitProducerIdRequest

        if self._producer is None:
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
            )
            for _ in range(_ATTEMPTS):
                response = send(self._admin, request)
                if response.error_code not in _PASSING:
                    break
                time.sleep(_RETRY_SECONDS)
            if response.error_code:
                refuse("a producer id at the target", response.error_code, None)
            self._producer = response.producer_id, response.producer_epoch
        return self._producer


def filler(timestamp: int) -> dict[str, Any]:
    """The arguments of `produce` for a record that only takes an offset."""
    return {"key": FILLER_KEY, "value": None, "headers": [(FILLER_HEADER, b"")], "timestamp": timestamp}


def is_filler(key: bytes | None, headers: Any) -> bool:
    return key == FILLER_KEY and bool(headers) and headers[0][0] == FILLER_HEADER

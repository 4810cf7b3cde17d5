"""Fetch: records as they lie on disk, at once or as soon as there are enough.

Nothing is decoded: a response is made of slices of segment files, cut at the byte limits as Kafka cuts them (the first
batch of the first partition with data comes whole even if it is larger than every limit; the last one may be cut). A
fetch that finds less than `min_bytes` waits and is woken by the append that brings enough, or by `max_wait_ms`.

Departures from Apache Kafka: there are no followers, so a fetch with a replica id is answered NOT_LEADER_OR_FOLLOWER;
a slice of batches of 256 kB and more ends with a whole one, since a client would throw the part of one away.

- v4: isolation levels. v5: log start offset. v7: sessions (KIP-227). v9: leader epoch check. v11: rack. v12: flexible,
  diverging epochs (KIP-595). v13: topic ids (KIP-516). v15: replica state (KIP-903). v16: node endpoints (KIP-951).
  v17: directory id. v18: high watermark in the request (KIP-1166).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from millstream.broker.apis.registry import Waiting, api
from millstream.broker.fetch_sessions import FetchSession, Key, requested
from millstream.log.fetch import READ_COMMITTED, Isolation
from millstream.wire.codec import maker_of
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext
    from millstream.broker.topics import Partition
    from millstream.log.partition_log import PartitionLog

partition_data = maker_of(PartitionData)
ISOLATION_LEVELS = {level.value: level for level in Isolation}
FIRST_VERSION_WITH_TOPIC_IDS = 13
SESSION_VERSIONS = 7


@api(FetchRequest, versions=(4, 18))
def fetch(broker: Broker, request: FetchRequest, context: RequestContext) -> FetchResponse | Waiting:
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    session: FetchSession | None = None
    if context.api_version >= SESSION_VERSIONS:
        try:
            session = broker.fetch_sessions.resume(request, by_id)
        except KafkaError as error:
            return FetchResponse(error_code=error.code)
    if session is None:
        wanted = requested(request, by_id)
    else:
        wanted = [(key, cached.wanted) for key, cached in session.partitions.items()]
    attempt = _Attempt(broker, request, context, session, by_id, wanted)
    if attempt.read() or request.max_wait_ms <= 0:
        return attempt.respond()
    return attempt


class _Attempt(Waiting):
    """One fetch, from the first look to the response."""

    __slots__ = (
        "_ready", "_timer", "_watches", "answers", "available", "broker", "by_id", "committed", "context", "is_replica",
        "isolation", "max_bytes", "min_bytes", "moved", "request", "session", "size", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        request: FetchRequest,
        context: RequestContext,
        session: FetchSession | None,
        by_id: bool,
        wanted: list[tuple[Key, FetchPartition]],
    ) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.session = session
        self.by_id = by_id
        self.wanted = wanted
        self.isolation = ISOLATION_LEVELS[request.isolation_level]
        self.committed = self.isolation is READ_COMMITTED
        self.max_bytes = min(request.max_bytes, broker.fetch_max_bytes, broker.quotas.fetch_limit(context))
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.available = 0
        """Bytes to be had from all partitions while waiting."""
        self.size = 0
        """Bytes of records in the answers."""
        self.answers: dict[Key, PartitionData] = {}
        self.is_replica = request.replica_id >= 0 or (
            request.replica_state is not None and request.replica_state.replica_id >= 0
        )
        self.moved = False
        """Whether an answer names another leader."""
        self._ready: Callable[[], None] | None = None
        """Whom to tell; None while nobody waits."""
        self._watches: list[tuple[PartitionLog, Callable[[], None]]] = []
        self._timer: asyncio.TimerHandle | None = None

    def _located(self) -> Iterator[tuple[Key, FetchPartition, Partition]]:
        """The partitions that are here; for the others it is answered that they are not."""
        topics = self.broker.topics
        last: str | bytes | None = None
        partitions: Sequence[Partition] = ()
        for key, item in self.wanted:
            name, index = key
            if name is not last:
                topic = topics.get_by_id(name) if isinstance(name, bytes) else topics.get(name)
                partitions = () if topic is None else topic.partitions
                last = name
            if 0 <= index < len(partitions) and not self.is_replica:
                yield key, item, partitions[index]
            else:
                self.answers[key] = _failed(index, self._why_not(key, partitions))

    def _why_not(self, key: Key, partitions: Sequence[Partition]) -> ErrorCode:
        topic, index = key
        if 0 <= index < len(partitions):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        was_there = self.session is not None and self.session.has_found(key)
        if isinstance(topic, bytes) and not partitions and not was_there:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def read(self) -> bool:
        """Reads every partition; whether the response is complete, so that there is nothing to wait for."""
        self.size = 0
        answers = self.answers
        found = complete = False
        for key, item, partition in self._located():
            found = True
            answers[key] = answer = self._read_partition(item, partition)
            if answer.error_code or answer.diverging_epoch is not None:
                complete = True
        return complete or not found or self.size >= self.min_bytes

    def _read_partition(self, item: FetchPartition, partition: Partition) -> PartitionData:
        try:
            if item.current_leader_epoch != partition.leader_epoch:
                partition.check_leader_epoch(item.current_leader_epoch)
            log = partition.log
            diverging = _diverging(item, log) if item.last_fetched_epoch >= 0 else None
            offset = item.fetch_offset
            room = self.max_bytes - self.size
            if diverging is not None or offset == log.high_watermark or (room <= 0 < self.size and log.holds(offset)):
                read = None  # there is nothing to give: no look into the log
            else:
                read = log.read(
                    offset,
                    max(min(item.partition_max_bytes, room), 0),
                    isolation=self.isolation,
                    min_one_message=self.size == 0,
                )
        except KafkaError as error:
            return self._refused(item.partition, partition, error.code)
        records: list[Any] | bytes = b""
        aborted: list[AbortedTransaction] | None = [] if self.committed and diverging is None else None
        if read is not None:
            if read.length and not read.first_entry_incomplete:
                records = [read]
                self.size += read.length
            if read.aborted:
                aborted = [
                    AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                    for producer_id, first_offset in read.aborted
                ]
        return partition_data(
            partition_index=item.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=aborted,
            records=records,
        )

    def _refused(self, index: int, partition: Partition, code: ErrorCode) -> PartitionData:
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self.context.api_version <= 5:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # those clients do not know the storage error and would give up
        answer = _failed(index, code)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            self.moved = True
            answer.current_leader = LeaderIdAndEpoch(leader_id=self.broker.node_id, leader_epoch=partition.leader_epoch)
        return answer

    def wait(self, ready: Callable[[], None]) -> None:
        """Until enough has been appended, or the time is up."""
        self._ready = ready
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.request.max_wait_ms / 1000, self._enough)
        self._watches = [(partition.log, self._watcher(item, partition.log)) for _, item, partition in self._located()]
        for log, appended in self._watches:
            log.subscribe(appended)
        for _, appended in self._watches.copy():
            appended()  # what is there already counts as well: it was only too little, or it came just now

    def _watcher(self, item: FetchPartition, log: PartitionLog) -> Callable[[], None]:
        """What to do after each append to `log`."""
        counted = 0

        def appended() -> None:
            nonlocal counted
            available = min(log.readable_bytes(item.fetch_offset, self.isolation), item.partition_max_bytes)
            self.available += available - counted
            counted = available
            if log.closed or self.available >= self.min_bytes:
                self._enough()

        return appended

    def _enough(self) -> None:
        ready = self._ready
        if ready is not None:
            self.stop()
            ready()

    def stop(self) -> None:
        self._ready = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for log, appended in self._watches:
            log.unsubscribe(appended)
        self._watches = []

    def answer(self) -> FetchResponse:
        """Everything is read anew."""
        self.read()
        return self.respond()

    def respond(self) -> FetchResponse:
        throttle_ms = self.broker.quotas.throttle_fetch(self.context, self.size)
        if throttle_ms > 0:
            session_id = self.session.session_id if self.session else 0
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id)
        answers = self.answers
        if self.session is not None:
            session_id = self.session.session_id if self.session.partitions else 0
            answers = self.session.changes(answers)
        elif self.context.api_version >= SESSION_VERSIONS:
            session_id = self.broker.fetch_sessions.create(self.request, self.by_id, answers)
        else:
            session_id = 0
        endpoints = self._endpoints() if self.moved else []
        return FetchResponse(session_id=session_id, responses=_by_topic(answers), node_endpoints=endpoints)

    def _endpoints(self) -> list[NodeEndpoint]:
        host, port = self.broker.endpoint(self.context)
        return [NodeEndpoint(node_id=self.broker.node_id, host=host, port=port, rack=self.broker.rack)]


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        records=b"",
    )


def _diverging(item: FetchPartition, log: PartitionLog) -> EpochEndOffset | None:
    epoch, end_offset = log.end_offset_for_epoch(item.last_fetched_epoch)
    if epoch == -1 or end_offset == -1:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "the epoch of the last fetched record is not known here")
    if epoch < item.last_fetched_epoch or end_offset < item.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _by_topic(answers: dict[Key, PartitionData]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    last: str | bytes | None = None
    partitions: list[PartitionData] = []
    for (topic, _), answer in answers.items():
        if topic != last:
            partitions = []
            topics.append(
                FetchableTopicResponse(topic_id=topic, partitions=partitions)
                if isinstance(topic, bytes)
                else FetchableTopicResponse(topic=topic, partitions=partitions)
            )
            last = topic
        partitions.append(answer)
    return topics

"""Produce: batches to the logs of their partitions.

The server looks at the header of each batch and at its checksum, gives it its offsets, and stores the rest as it came.
A request with acks=0 has no answer; if it fails, the connection is closed, which is all its client can notice.

Departures from Apache Kafka: none known. acks=1 and acks=-1 are the same here, as on a Kafka topic with one replica,
where `min.insync.replicas` above 1 counts as 1.

- v3: record batches, transactional id. v5: log start offset. v7: zstd. v8: record errors (KIP-467). v10: leader and
  node endpoints (KIP-951). v11: TRANSACTION_ABORTABLE (KIP-890). v12: partitions join the transaction by being
  written to (KIP-890 part 2). v13: topic ids (KIP-516).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.topics import is_internal
from millstream.log.append import RecordValidationError
from millstream.wire.batches import HEADER_SIZE, TRANSACTIONAL_BIT, BatchHeader, parse_header
from millstream.wire.codec import maker_of
from millstream.wire.compression import Compression
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext
    from millstream.broker.topics import Topic
    from millstream.log.partition_log import PartitionLog

partition_response = maker_of(PartitionProduceResponse)
topic_response = maker_of(TopicProduceResponse)
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_OF_TRANSACTIONS_V2 = 12
FIRST_VERSION_WITH_ZSTD = 7
ADMIN_CLIENT_ID = "__admin_client"


@api(ProduceRequest, versions=(3, 13))
def produce(
    broker: Broker, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    attempt = _Attempt(broker, request, context)
    response = ProduceResponse(responses=list(map(attempt.topic, request.topic_data)))
    if attempt.flushes:
        return attempt.flushed(response)
    return attempt.respond(response)


def _refusal(index: int, error: KafkaError) -> PartitionProduceResponse:
    records = error.record_errors if isinstance(error, RecordValidationError) else []
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=message)
            for position, message in records
        ],
        error_message=error.message or None,
    )


class _Attempt:
    """One produce request: appended partition by partition, answered when what must be on disk is on disk."""

    __slots__ = ("broker", "bytes", "context", "failed", "flushes", "refused", "request")

    def __init__(self, broker: Broker, request: ProduceRequest, context: RequestContext) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.failed = False
        self.bytes = 0
        self.flushes: list[tuple[PartitionLog, PartitionProduceResponse]] = []
        self.refused = None if request.acks in (-1, 0, 1) else ErrorCode.INVALID_REQUIRED_ACKS

    def topic(self, data: TopicProduceData) -> TopicProduceResponse:
        topics = self.broker.topics
        by_id = self.context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        topic = topics.get_by_id(data.topic_id) if by_id else topics.get(data.name)
        partitions: list[PartitionProduceResponse] = []
        for item in data.partition_data:
            try:
                partition = self._append(topic, item)
            except KafkaError as error:
                self.failed = True
                partition = _refusal(item.index, error)
            partitions.append(partition)
        return topic_response(name=data.name, topic_id=data.topic_id, partition_responses=partitions)

    def _append(self, topic: Topic | None, data: PartitionProduceData) -> PartitionProduceResponse:
        version = self.context.api_version
        if topic is None:
            by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        index = data.index
        if not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = topic.partitions[index]
        records = data.records if isinstance(data.records, memoryview) else memoryview(b"")
        self.bytes += len(records)
        header = parse_header(records) if len(records) >= HEADER_SIZE else None
        if version < FIRST_VERSION_WITH_ZSTD and header is not None and header.compression is Compression.ZSTD:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 of Produce")
        if self.refused is not None:
            raise KafkaError(self.refused)
        if is_internal(topic.name) and self.context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is an internal topic")
        epoch_bump = False
        if header is not None and header.attributes & TRANSACTIONAL_BIT:
            self._join_transaction(topic.name, index, header)
            epoch_bump = version >= FIRST_VERSION_OF_TRANSACTIONS_V2
        log = partition.log
        info = log.append(records, leader_epoch=partition.leader_epoch, supports_epoch_bump=epoch_bump, header=header)
        response = partition_response(
            index=index,
            base_offset=info.base_offset,
            log_append_time_ms=info.log_append_time,
            log_start_offset=info.log_start_offset,
        )
        if info.flush_needed:
            self.flushes.append((log, response))
        return response

    def _join_transaction(self, topic: str, index: int, header: BatchHeader) -> None:
        transactional_id = self.request.transactional_id
        if transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        self.broker.transactions.check_produce(
            transactional_id,
            header.producer_id,
            header.producer_epoch,
            (topic, index),
            self.context.api_version,
        )

    async def flushed(self, response: ProduceResponse) -> ProduceResponse | None:
        """Waits for the group commit; a partition whose fsync failed is answered with the storage error."""
        await asyncio.gather(*(self._flush(log, partition) for log, partition in self.flushes))
        return self.respond(response)

    async def _flush(self, log: PartitionLog, response: PartitionProduceResponse) -> None:
        try:
            await self.broker.flush(log)
        except KafkaError as error:
            self.failed = True
            response.error_code = error.code
            response.base_offset = -1
            response.error_message = error.message

    def respond(self, response: ProduceResponse) -> ProduceResponse | None:
        response.throttle_time_ms = self.broker.quotas.throttle_produce(self.context, self.bytes)
        if self.request.acks == 0:
            self.context.close = self.failed
            return None
        return response

"""TxnOffsetCommit: offsets of a group are committed within a producer's transaction.

They are written to `__consumer_offsets` on behalf of the producer and count when the transaction commits. The group's
partition has to be part of the transaction: AddOffsetsToTxn put it there, or v5 does it here (transactions v2).

Departures from Apache Kafka: none known.

- v1: throttle time. v2: leader epoch. v3: member id, generation and group.instance.id are checked (KIP-447), flexible.
  v4: TRANSACTION_ABORTABLE is understood (KIP-890). v5: transactions v2 (KIP-890 part 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.transactions.verification import operation_of_txn_offset_commit
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

OFFSETS_TOPIC = "__consumer_offsets"


@api(TxnOffsetCommitRequest, versions=(0, 5))
def txn_offset_commit(
    broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    accepted: list[TxnOffsetCommitRequestTopic] = []
    refused: dict[str, list[TxnOffsetCommitResponsePartition]] = {}
    for topic in request.topics:
        count = broker.topics.partition_count(topic.name) or 0
        missing = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
        if missing:
            refused.setdefault(topic.name, []).extend(_errors(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        existing = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if existing:
            accepted.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=existing))
    response = TxnOffsetCommitResponse()
    if accepted:
        request.topics = accepted
        try:
            response = _commit(broker, request, context)
        except KafkaError as error:
            response.topics = [
                TxnOffsetCommitResponseTopic(
                    name=topic.name, partitions=_errors((p.partition_index for p in topic.partitions), error.code)
                )
                for topic in accepted
            ]
    for answer in response.topics:
        answer.partitions += refused.pop(answer.name, [])
    response.topics += [TxnOffsetCommitResponseTopic(name=name, partitions=each) for name, each in refused.items()]
    return response


def _commit(broker: Broker, request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    partition = (OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
    errors = broker.transactions.verify_partition(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (partition,),
        operation_of_txn_offset_commit(context.api_version),
    )
    if errors:
        raise KafkaError(errors[partition])
    return broker.groups.txn_offset_commit(request, context)


def _errors(partitions: Iterable[int], error: ErrorCode) -> list[TxnOffsetCommitResponsePartition]:
    return [TxnOffsetCommitResponsePartition(partition_index=index, error_code=error) for index in partitions]

"""AddPartitionsToTxn: partitions become part of a transaction, which begins with the first of them.

All or nothing for each transaction: if one partition does not exist, it gets the error and the others
OPERATION_NOT_ATTEMPTED. Internal topics are refused to clients; offsets join through AddOffsetsToTxn.

Departures from Apache Kafka: none known. Versions 4 and 5 are for brokers, which ask on behalf of a Produce; there is
no other broker here, but they are answered all the same.

- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588). v3: flexible. v4: several transactions at once, and
  `verify_only` (KIP-890). v5: TRANSACTION_ABORTABLE is understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.topics import is_internal
from millstream.broker.transactions.metadata import LATEST_TRANSACTION_VERSION, TopicPartition
from millstream.broker.transactions.verification import error_for_client
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

LAST_CLIENT_VERSION = 3
FIRST_VERSION_WITH_FENCING = 2
Errors = dict[TopicPartition, ErrorCode]


@api(AddPartitionsToTxnRequest, versions=(0, 5))
def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    if context.api_version > LAST_CLIENT_VERSION:
        results = [
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_handled(broker, each, context.api_version)
            )
            for each in request.transactions
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_handled(broker, transaction, context.api_version))


def _handled(
    broker: Broker, transaction: AddPartitionsToTxnTransaction, api_version: int
) -> list[AddPartitionsToTxnTopicResult]:
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    errors = _refused(broker, partitions, api_version)
    if not errors:
        try:
            errors = _added(broker, transaction, partitions, api_version)
        except KafkaError as error:
            code = error_for_client(error.code, knows_fencing=api_version >= FIRST_VERSION_WITH_FENCING)
            errors = dict.fromkeys(partitions, code)
    return [_result(topic, errors) for topic in transaction.topics]


def _refused(broker: Broker, partitions: list[TopicPartition], api_version: int) -> Errors:
    refused: Errors = {}
    for topic, index in partitions:
        if api_version <= LAST_CLIENT_VERSION and is_internal(topic):
            refused[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif broker.topics.partition(topic, index) is None:
            refused[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not refused:
        return {}
    return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused


def _added(
    broker: Broker, transaction: AddPartitionsToTxnTransaction, partitions: list[TopicPartition], api_version: int
) -> Errors:
    who = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        return dict.fromkeys(broker.transactions.find_unverified(*who, partitions), ErrorCode.TRANSACTION_ABORTABLE)
    version = LATEST_TRANSACTION_VERSION if api_version > LAST_CLIENT_VERSION else 0
    broker.transactions.add_partitions(*who, partitions, version)
    return {}


def _result(topic: AddPartitionsToTxnTopic, errors: Errors) -> AddPartitionsToTxnTopicResult:
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=errors.get((topic.name, index), ErrorCode.NONE)
            )
            for index in topic.partitions
        ],
    )

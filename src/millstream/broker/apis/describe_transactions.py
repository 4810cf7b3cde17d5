"""DescribeTransactions: the state of transactional ids, with the partitions of an open transaction.

Departures from Apache Kafka: none known.

- v0: KIP-664.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.transactions.records import by_topic
from millstream.wire.errors import KafkaError
from millstream.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DescribeTransactionsRequest, versions=(0, 0))
def describe_transactions(
    broker: Broker, request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(broker, transactional_id) for transactional_id in request.transactional_ids]
    )


def _described(broker: Broker, transactional_id: str) -> TransactionState:
    try:
        metadata = broker.transactions.describe_transaction(transactional_id)
    except KafkaError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.text,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic=topic, partitions=ids) for topic, ids in by_topic(metadata.partitions).items()],
    )

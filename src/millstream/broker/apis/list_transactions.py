"""ListTransactions: the transactional ids of this coordinator, filtered.

Departure from Apache Kafka: the pattern is an expression of RE2, which lacks what Java's can do beyond regular
languages (back-references, look-around); one that RE2 cannot read is INVALID_REGULAR_EXPRESSION.

- v0: KIP-664. v1: filter by duration (KIP-994). v2: filter by a pattern of the transactional id (KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import KafkaError
from millstream.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(ListTransactionsRequest, versions=(0, 2))
def list_transactions(
    broker: Broker, request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    try:
        listing = broker.transactions.list_transactions(
            states=request.state_filters,
            producer_ids=request.producer_id_filters,
            duration_ms=request.duration_filter,
            pattern=request.transactional_id_pattern,
        )
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=listing.unknown_states,
        transaction_states=[
            TransactionState(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.text,
            )
            for metadata in listing.transactions
        ],
    )

"""EndTxn: commits or aborts a transaction.

The answer means that the outcome is decided and on record. The markers are normally written by then, too, so that the
next transaction can begin at once; if the storage refused one, it is retried, and until then the next request is
answered with CONCURRENT_TRANSACTIONS.

Departures from Apache Kafka: none known (Kafka writes the markers after the answer).

- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588). v3: flexible. v4: TRANSACTION_ABORTABLE is known.
  v5: transactions v2, the epoch is bumped and returned (KIP-890 part 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.transactions.metadata import LATEST_TRANSACTION_VERSION
from millstream.broker.transactions.verification import error_for_client
from millstream.wire.errors import KafkaError
from millstream.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_FENCING = 2
FIRST_VERSION_WITH_EPOCH_BUMP = 5


@api(EndTxnRequest, versions=(0, 5))
def end_txn(broker: Broker, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    bumps = context.api_version >= FIRST_VERSION_WITH_EPOCH_BUMP
    try:
        producer = broker.transactions.end_txn(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_transaction_version=LATEST_TRANSACTION_VERSION if bumps else 0,
        )
    except KafkaError as error:
        code = error_for_client(error.code, knows_fencing=context.api_version >= FIRST_VERSION_WITH_FENCING)
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)

"""AddOffsetsToTxn: the offsets of a consumer group become part of a transaction.

What is added is the partition of `__consumer_offsets` that the group lives in; TxnOffsetCommit then writes to it.

Departures from Apache Kafka: none known.

- v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588). v3: flexible. v4: TRANSACTION_ABORTABLE is understood
  (KIP-890). Clients of transactions v2 do not send this at all: TxnOffsetCommit 5 adds the partition itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.transactions.verification import error_for_client
from millstream.wire.errors import KafkaError
from millstream.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_FENCING = 2
OFFSETS_TOPIC = "__consumer_offsets"


@api(AddOffsetsToTxnRequest, versions=(0, 4))
def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    try:
        broker.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))],
            client_transaction_version=0,
        )
    except KafkaError as error:
        code = error_for_client(error.code, knows_fencing=context.api_version >= FIRST_VERSION_WITH_FENCING)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()

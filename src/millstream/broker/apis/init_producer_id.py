"""InitProducerId: a producer id and epoch for an idempotent or a transactional producer.

Without a transactional id every request gets a producer id of its own. With one, the epoch is bumped, so that earlier
instances of the same producer are fenced; a transaction that such an instance left open is aborted first, and the
answer is CONCURRENT_TRANSACTIONS until that is done.

Departures from Apache Kafka: none known. Version 6 (two-phase commit, KIP-939) is not offered, as in Kafka 4.3.

- v2: flexible. v3: the current producer id and epoch, for a producer that recovers from an error (KIP-360). v4:
  PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588). v5: TRANSACTION_ABORTABLE is understood (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.transactions.metadata import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
)
from millstream.broker.transactions.verification import error_for_client
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_FENCING = 4


@api(InitProducerIdRequest, versions=(0, 5))
def init_producer_id(broker: Broker, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    expected: ProducerIdAndEpoch | None = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if expected == NO_PRODUCER:
        expected = None
    elif request.producer_id == NO_PRODUCER_ID or request.producer_epoch == NO_PRODUCER_EPOCH:
        return _refused(ErrorCode.INVALID_REQUEST)
    try:
        producer = broker.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            expected,
            enable_two_phase_commit=request.enable2_pc,
            keep_prepared_transaction=request.keep_prepared_txn,
        )
    except KafkaError as error:
        return _refused(error_for_client(error.code, knows_fencing=context.api_version >= FIRST_VERSION_WITH_FENCING))
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)

"""FindCoordinator: which node coordinates a group or a transactional id. There is one node, so it is this one.

The internal topic of the coordinator is created on the first question.

Departures from Apache Kafka: the topic is there at once, so the first question is answered with the coordinator and
not with COORDINATOR_NOT_AVAILABLE; there is no share coordinator, so a share key (type 2) is always INVALID_REQUEST.

- v0: groups only. v1: key type, throttle time, error message. v3: flexible. v4: several keys (KIP-699). v5:
  TRANSACTION_ABORTABLE is understood (KIP-890). v6: share groups (KIP-932).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_KEYS = 4
GROUP, TRANSACTION = 0, 1
NO_NODE = -1


@api(FindCoordinatorRequest, versions=(0, 6))
def find_coordinator(
    broker: Broker, request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if context.api_version >= FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=[_find(broker, request.key_type, key, context) for key in request.coordinator_keys]
        )
    found = _find(broker, request.key_type, request.key, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: Broker, key_type: int, key: str, context: RequestContext) -> Coordinator:
    try:
        if key_type == GROUP:
            broker.groups.partition_for(key)
        elif key_type == TRANSACTION:
            broker.transactions.partition_for(key)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no coordinator for keys of type {key_type}.")
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error.code, error_message=error.message
        )
    host, port = broker.endpoint(context)
    # Kafka's old responses say NONE in words, too; its newer ones say nothing.
    message = "" if context.api_version >= FIRST_VERSION_WITH_KEYS else "NONE"
    return Coordinator(key=key, node_id=broker.node_id, host=host, port=port, error_message=message)

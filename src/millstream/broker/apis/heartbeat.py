"""Heartbeat: a member of a classic group lives. The error code tells it what has become of the group.

REBALANCE_IN_PROGRESS: join again. ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID: it has been left behind. FENCED_INSTANCE_ID:
another process has its group.instance.id.

Departures from Apache Kafka: none known.

- v1: throttle time. v3: static members (KIP-345). v4: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import KafkaError
from millstream.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(HeartbeatRequest, versions=(0, 4))
def heartbeat(broker: Broker, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    try:
        broker.groups.heartbeat(request)
    except KafkaError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse()

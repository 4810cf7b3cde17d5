"""ConsumerGroupHeartbeat: joining, staying in, changing and leaving a consumer group, and being told the assignment.

Member epoch 0 joins, -1 leaves, -2 is a static member that will be back, anything else is the member's epoch. The
response carries an assignment when it changed, or when the request said everything there is to say about the member.

Departures from Apache Kafka: topics behind a regular expression come with the first response instead of a later one; a
static member that repeats its join under the same member id is taken back instead of UNRELEASED_INSTANCE_ID.

- v0: the consumer protocol (KIP-848). v1: SubscribedTopicRegex, and the client makes its member id (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(ConsumerGroupHeartbeatRequest, versions=(0, 1))
def consumer_group_heartbeat(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    return broker.groups.consumer_group_heartbeat(request, context)

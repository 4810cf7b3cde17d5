"""JoinGroup: a member joins a classic group, or joins it again to take part in the next generation.

The answer comes when the join barrier opens: at once, when the last member has joined, after
group.initial.rebalance.delay.ms, or with the rebalance time-out. The connection waits with it.

Departure from Apache Kafka: a JoinGroup that waits while the same member sends another one is answered
REBALANCE_IN_PROGRESS; Kafka forgets it.

- v1: rebalance time-out. v2: throttle time. v4: MEMBER_ID_REQUIRED, the member id is given first (KIP-394). v5: static
  members (KIP-345). v6: flexible. v7: protocol type. v8: reason (KIP-800). v9: skip assignment (KIP-814).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_NO_PROTOCOL_NAME = 7


@api(JoinGroupRequest, versions=(0, 9))
def join_group(broker: Broker, request: JoinGroupRequest, context: RequestContext) -> asyncio.Future[JoinGroupResponse]:
    future: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()

    def reply(response: JoinGroupResponse) -> None:
        if context.api_version < FIRST_VERSION_WITH_NO_PROTOCOL_NAME and response.protocol_name is None:
            response.protocol_name = ""
        if not future.done():  # the connection may be gone
            future.set_result(response)

    if context.api_version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    broker.groups.join_group(request, context, reply)
    return future

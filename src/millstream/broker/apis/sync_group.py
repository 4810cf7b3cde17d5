"""SyncGroup: the leader hands in the assignment of a generation, the other members wait for theirs.

The answer comes when the leader's assignment is on record, or with an error when the group rebalances again before.

Departure from Apache Kafka: a SyncGroup that waits is answered when its member is removed or sends another one; Kafka
forgets it.

- v1: throttle time. v3: static members (KIP-345). v4: flexible. v5: protocol type and name, which then must be there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_PROTOCOL = 5


@api(SyncGroupRequest, versions=(0, 5))
def sync_group(
    broker: Broker, request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    future: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()

    def reply(response: SyncGroupResponse) -> None:
        if not future.done():  # the connection may be gone
            future.set_result(response)

    broker.groups.sync_group(request, reply)
    return future

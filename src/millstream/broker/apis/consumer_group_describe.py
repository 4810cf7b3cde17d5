"""ConsumerGroupDescribe: epochs, state, assignor, members and assignments of consumer groups (KIP-848).

A member's assignment includes what it was told to revoke and still holds. Classic groups have DescribeGroups; to this
API they do not exist (GROUP_ID_NOT_FOUND).

Departures from Apache Kafka: none known.

- v0: the consumer protocol (KIP-848). v1: the type of each member, since a group may have both kinds (KIP-1099).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import authorized_operations
from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(ConsumerGroupDescribeRequest, versions=(0, 1))
def consumer_group_describe(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    described = broker.groups.consumer_group_describe(request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = authorized_operations.GROUP
    return ConsumerGroupDescribeResponse(groups=described)

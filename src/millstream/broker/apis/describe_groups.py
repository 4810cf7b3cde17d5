"""DescribeGroups: state, protocol and members of classic groups. Consumer groups have ConsumerGroupDescribe.

Departures from Apache Kafka: none known.

- v1: throttle time. v3: authorized operations (KIP-430). v4: static members (KIP-345). v5: flexible. v6: a group that
  does not exist is GROUP_ID_NOT_FOUND with a message; before it is only `Dead` (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import authorized_operations
from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_AUTHORIZED_OPERATIONS = 3


@api(DescribeGroupsRequest, versions=(0, 6))
def describe_groups(broker: Broker, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    described = broker.groups.describe_groups(request.groups, context.api_version)
    if context.api_version >= FIRST_VERSION_WITH_AUTHORIZED_OPERATIONS and request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = authorized_operations.GROUP
    return DescribeGroupsResponse(groups=described)

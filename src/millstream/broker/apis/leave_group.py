"""LeaveGroup: members leave a classic group at once instead of timing out, or an administrator removes static ones.

Departures from Apache Kafka: none known.

- v0-2: one member; its error is the error of the response. v3: several members, by member id or group.instance.id
  (KIP-345). v4: flexible. v5: reason (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

FIRST_VERSION_WITH_MEMBERS = 3


@api(LeaveGroupRequest, versions=(0, 5))
def leave_group(broker: Broker, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    if context.api_version >= FIRST_VERSION_WITH_MEMBERS:
        return broker.groups.leave_group(request)
    request.members = [MemberIdentity(member_id=request.member_id)]
    response = broker.groups.leave_group(request)
    if response.error_code == ErrorCode.NONE:
        response.error_code = response.members[0].error_code
    return response

"""DeleteGroups: groups without members are deleted, of either kind, and their offsets with them.

Departures from Apache Kafka: none known.

- v1: throttle time (KIP-219). v2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DeleteGroupsRequest, versions=(0, 2))
def delete_groups(broker: Broker, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    def delete(group_id: str) -> ErrorCode:
        try:
            broker.groups.delete_group(group_id)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=delete(group_id)) for group_id in names]
    )

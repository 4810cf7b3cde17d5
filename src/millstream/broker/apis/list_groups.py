"""ListGroups: every group this coordinator knows, of both kinds, with or without members.

Departures from Apache Kafka: none known.

- v1: throttle time. v3: flexible. v4: state, and a filter by it (KIP-518). v5: type, and a filter by it (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import KafkaError
from millstream.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(ListGroupsRequest, versions=(0, 5))
def list_groups(broker: Broker, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    try:
        return ListGroupsResponse(groups=broker.groups.list_groups(request.states_filter, request.types_filter))
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)

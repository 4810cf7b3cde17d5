"""ListPartitionReassignments: the partitions on the move (KIP-455). There is nowhere to go, so there are none.

Departures from Apache Kafka: none known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(ListPartitionReassignmentsRequest, versions=(0, 0))
def list_partition_reassignments(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)

"""ElectLeaders: elections of leaders, of which there is only one candidate here, who leads already.

Departures from Apache Kafka: none known. A partition that exists is ELECTION_NOT_NEEDED; if all partitions are asked
for, those are left out of the answer.

- v0: preferred leaders (KIP-183). v1: unclean elections, a top-level error (KIP-460). v2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

PREFERRED, UNCLEAN = 0, 1


@api(ElectLeadersRequest, versions=(0, 2))
def elect_leaders(broker: Broker, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    if request.topic_partitions is None:
        if request.election_type not in (PREFERRED, UNCLEAN):
            return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(topic=t.name) for t in broker.topics]
        )
    known = request.election_type in (PREFERRED, UNCLEAN)
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=wanted.topic,
                partition_result=[
                    _elect(broker, wanted.topic, index)
                    if known
                    else PartitionResult(
                        partition_id=index,
                        error_code=ErrorCode.INVALID_REQUEST,
                        error_message="Unknown type of election",
                    )
                    for index in wanted.partitions
                ],
            )
            for wanted in request.topic_partitions
        ],
    )


def _elect(broker: Broker, topic: str, index: int) -> PartitionResult:
    if broker.topics.partition(topic, index) is None:
        message = f"There is no partition {topic}-{index}"
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResult(partition_id=index, error_code=code, error_message=message)
    code, message = ErrorCode.ELECTION_NOT_NEEDED, "The partition has the leader it should have"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)

"""CreatePartitions: gives topics more partitions (KIP-195). There is no way to have fewer again.

Departures from Apache Kafka: none known. A manual assignment can name this broker only.

- v0-1: as said. v2: flexible. v3: THROTTLING_QUOTA_EXCEEDED instead of a mere wait (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker import placement
from millstream.broker.apis.registry import api
from millstream.broker.quotas import MutationQuota
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

MAX_PARTITIONS_PER_REQUEST = 10_000
STRICT_QUOTA_SINCE = 3


@api(CreatePartitionsRequest, versions=(0, 3))
def create_partitions(
    broker: Broker, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    quota = broker.quotas.mutations(context, strict_since=STRICT_QUOTA_SINCE)
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    counts: dict[str, int] = {}
    for topic in request.topics:
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named more than once")
            _check(broker, topic, quota)
        except KafkaError as error:
            results[topic.name] = _failure(topic.name, error)
            continue
        counts[topic.name] = topic.count
        results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
    if counts and not request.validate_only:
        try:
            broker.topics.add_partitions(counts)
        except KafkaError as error:
            results.update({name: _failure(name, error) for name in counts})
    context.throttle_ms = max(context.throttle_ms, quota.throttle_ms)
    return CreatePartitionsResponse(throttle_time_ms=context.throttle_ms, results=list(results.values()))


def _check(broker: Broker, wanted: CreatePartitionsTopic, quota: MutationQuota) -> None:
    topic = broker.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    additional = wanted.count - len(topic.partitions)
    if additional <= 0:
        message = f"The topic has {len(topic.partitions)} partitions already; {wanted.count} are not more"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if additional > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "The request asks for too many partitions")
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        message = f"There are {len(wanted.assignments)} assignments for {additional} more partitions"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    quota.record(additional)
    for assignment in wanted.assignments or ():
        placement.check_assignment(broker.node_id, assignment.broker_ids)


def _failure(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message or None)

"""DescribeTopicPartitions: topics page by page, in the order of their names (KIP-966).

Departures from Apache Kafka: none known. The cursor names the first topic and partition that did not fit; the page is
bounded by the request's limit and by `max.request.partition.size.limit`. A topic list that lacks the cursor's topic
is an invalid request, which every topic of the list is answered with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import authorized_operations
from millstream.broker.apis.registry import api
from millstream.broker.topics import Topic, is_internal, validate_name
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DescribeTopicPartitionsRequest, versions=(0, 0))
def describe_topic_partitions(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    first = cursor.topic_name if cursor else ""
    every = not request.topics
    wanted = [topic.name for topic in broker.topics] if every else [topic.name for topic in request.topics]
    names = sorted(name for name in set(wanted) if name >= first)
    if cursor and ((not every and first not in names) or cursor.partition_index < 0):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
                for topic in request.topics
            ]
        )
    limit = max(1, min(broker.settings.int("max.request.partition.size.limit"), request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        start = cursor.partition_index if cursor and name == first else 0
        topic = broker.topics.get(name)
        if topic is None:
            if not every:
                response.topics.append(_unknown(name))
            continue
        if limit <= 0:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=start)
            break
        partitions = _partitions(broker, topic)[start : start + limit]
        limit -= len(partitions)
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=is_internal(name),
                partitions=partitions,
                topic_authorized_operations=authorized_operations.TOPIC,
            )
        )
        if start + len(partitions) < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=start + len(partitions))
            break
    return response


def _partitions(broker: Broker, topic: Topic) -> list[DescribeTopicPartitionsResponsePartition]:
    node = [broker.node_id]
    return [
        DescribeTopicPartitionsResponsePartition(
            partition_index=partition.index,
            leader_id=broker.node_id,
            leader_epoch=partition.leader_epoch,
            replica_nodes=node,
            isr_nodes=node,
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for partition in topic.partitions
    ]


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    try:
        validate_name(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=authorized_operations.TOPIC,
    )

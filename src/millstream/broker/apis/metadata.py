"""Metadata: brokers, the controller, topics and their partitions.

Departure from Apache Kafka: a topic that is created by being asked for is there in the same response. Kafka answers
UNKNOWN_TOPIC_OR_PARTITION first and lets the client ask again.

- v0: an empty topic list means all topics. v1: null means all, empty means none; controller and internal flag.
- v2: cluster id. v4: auto creation can be declined. v7: leader epochs. v8-v10: authorized operations. v10: topic ids.
- v12: topics by id. v13: top-level error code (KIP-1102).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker import authorized_operations
from millstream.broker.apis.registry import api
from millstream.broker.topics import Topic, is_internal, validate_name
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(MetadataRequest, versions=(0, 13))
def metadata(broker: Broker, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    host, port = broker.endpoint(context)
    cluster_operations = authorized_operations.OMITTED
    if request.include_cluster_authorized_operations:
        cluster_operations = authorized_operations.CLUSTER
    topics = _topics(broker, request, context.api_version)
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = authorized_operations.TOPIC
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations,
    )


def _topics(broker: Broker, request: MetadataRequest, version: int) -> list[MetadataResponseTopic]:
    if request.topics is None or (version == 0 and not request.topics):
        return [_known(broker, topic) for topic in broker.topics]
    for wanted in request.topics:
        if version < 12 and (wanted.name is None or wanted.topic_id != ZERO_UUID):
            return [
                MetadataResponseTopic(
                    error_code=ErrorCode.INVALID_REQUEST,
                    name=wanted.name or "",
                    topic_id=wanted.topic_id,
                )
                for wanted in request.topics
            ]
    by_id = {wanted.topic_id: wanted for wanted in request.topics if wanted.topic_id != ZERO_UUID}
    if by_id:
        return [_by_id(broker, topic_id) for topic_id in by_id]
    names = {wanted.name: wanted for wanted in request.topics}
    return [_by_name(broker, wanted, request.allow_auto_topic_creation) for wanted in names.values()]


def _by_id(broker: Broker, topic_id: bytes) -> MetadataResponseTopic:
    topic = broker.topics.get_by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return _known(broker, topic)


def _by_name(broker: Broker, wanted: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic:
    name = wanted.name or ""
    topic = broker.topics.get(name)
    if topic is None:
        try:
            validate_name(name)
            if not (may_create and broker.configs.bool("auto.create.topics.enable")):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            topic = broker.topics.create_automatically(name)
        except KafkaError as error:
            return MetadataResponseTopic(error_code=error.code, name=name, is_internal=is_internal(name))
    return _known(broker, topic)


def _known(broker: Broker, topic: Topic) -> MetadataResponseTopic:
    node = [broker.node_id]
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=broker.node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
            )
            for partition in topic.partitions
        ],
    )

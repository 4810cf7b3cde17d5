"""CreateTopics: makes topics, each by itself: one that cannot be made does not keep the others from being made.

Departures from Apache Kafka: none known. There is one broker: a replication factor above 1 is
INVALID_REPLICATION_FACTOR, a manual assignment to any other broker INVALID_REPLICA_ASSIGNMENT. The topics are there
when the response is sent, so the time-out never matters.

- v2-3: -1 only with a manual assignment. v4: -1 is the broker's default (KIP-464).
- v5: flexible; the new topic's configs, partitions and replication factor (KIP-525).
- v6: THROTTLING_QUOTA_EXCEEDED instead of a mere wait (KIP-599). v7: topic ids (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker import placement
from millstream.broker.apis.registry import api
from millstream.broker.configs.dynamic import ResourceType
from millstream.broker.configs.effective import describe_new_topic
from millstream.broker.quotas import MutationQuota
from millstream.broker.topics import NewTopic
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
MAX_PARTITIONS_PER_REQUEST = 10_000
STRICT_QUOTA_SINCE = 6


@api(CreateTopicsRequest, versions=(2, 7))
def create_topics(broker: Broker, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    quota = broker.quotas.mutations(context, strict_since=STRICT_QUOTA_SINCE)
    counts = Counter(topic.name for topic in request.topics)
    too_many = _partitions_asked_for(broker, request) > MAX_PARTITIONS_PER_REQUEST
    results: dict[str, CreatableTopicResult] = {}
    checked: list[NewTopic] = []
    for topic in request.topics:
        try:
            if too_many:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, "The request asks for too many partitions")
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named more than once")
            new = _check(broker, topic, quota)
        except KafkaError as error:
            results[topic.name] = _failure(topic.name, error)
            continue
        checked.append(new)
        results[topic.name] = _success(broker, new)
    if checked and not request.validate_only:
        _create(broker, checked, results)
    context.throttle_ms = max(context.throttle_ms, quota.throttle_ms)
    return CreateTopicsResponse(throttle_time_ms=context.throttle_ms, topics=list(results.values()))


def _partitions_asked_for(broker: Broker, request: CreateTopicsRequest) -> int:
    default = broker.configs.int("num.partitions")
    return sum(
        len(topic.assignments) or (default if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in request.topics
    )


def _check(broker: Broker, topic: CreatableTopic, quota: MutationQuota) -> NewTopic:
    """The topic that will be made; KafkaError if it cannot be."""
    if topic.name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The topic {topic.name} belongs to the controllers")
    broker.topics.validate_new(topic.name)
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"A value must not be null: {', '.join(nulls)}")
    configs = {config.name: config.value or "" for config in topic.configs}
    broker.configs.validate(ResourceType.TOPIC, topic.name, configs)
    partitions = _assigned(broker, topic) if topic.assignments else _placed(broker, topic)
    quota.record(partitions)
    return NewTopic(topic.name, partitions, configs)


def _assigned(broker: Broker, topic: CreatableTopic) -> int:
    """The number of partitions of a manual assignment."""
    if topic.replication_factor != -1 or topic.num_partitions != -1:
        message = "With a manual assignment, partitions and replication factor must be -1"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    indexes = [assignment.partition_index for assignment in topic.assignments]
    for assignment in topic.assignments:
        placement.check_assignment(broker.node_id, assignment.broker_ids)
    if sorted(indexes) != list(range(len(indexes))):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The partitions must be numbered from 0 without a gap")
    return len(indexes)


def _placed(broker: Broker, topic: CreatableTopic) -> int:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor must be above 0, or -1")
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "The number of partitions must be above 0, or -1")
    factor = topic.replication_factor
    placement.check_replication_factor(broker.configs.int("default.replication.factor") if factor == -1 else factor)
    return broker.configs.int("num.partitions") if topic.num_partitions == -1 else topic.num_partitions


def _create(broker: Broker, checked: list[NewTopic], results: dict[str, CreatableTopicResult]) -> None:
    try:
        created = broker.topics.create_checked(checked)
    except KafkaError as error:
        results.update({new.name: _failure(new.name, error) for new in checked})
        return
    for topic in created:
        results[topic.name].topic_id = topic.topic_id


def _failure(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message or None, configs=[])


def _success(broker: Broker, new: NewTopic) -> CreatableTopicResult:
    """Validation alone has an id as well, as in Kafka; nobody will meet it again."""
    return CreatableTopicResult(
        name=new.name,
        topic_id=broker.topics.new_id(),
        error_message=None,
        num_partitions=new.partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(name=entry.name, value=entry.value, config_source=entry.source)
            for entry in describe_new_topic(broker.configs.levels, new.configs)
        ],
    )

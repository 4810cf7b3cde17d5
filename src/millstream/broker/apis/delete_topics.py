"""DeleteTopics: deletes topics by name or by id. They are gone when the response is sent, their files a little later.

Departures from Apache Kafka: none known.

- v1-2: where delete.topic.enable is false, INVALID_REQUEST. v3: TOPIC_DELETION_DISABLED.
- v4: flexible. v5: error messages, THROTTLING_QUOTA_EXCEEDED instead of a mere wait (KIP-599).
- v6: topics by id (KIP-516).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.topics import Topic
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID
from millstream.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext

STRICT_QUOTA_SINCE = 5


@api(DeleteTopicsRequest, versions=(1, 6))
def delete_topics(broker: Broker, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    if not broker.configs.bool("delete.topic.enable"):
        code = ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return DeleteTopicsResponse(responses=[_failure(state, KafkaError(code)) for state in wanted])
    quota = broker.quotas.mutations(context, strict_since=STRICT_QUOTA_SINCE)
    results: list[DeletableTopicResult] = []
    found: dict[bytes, Topic] = {}
    for state, problem in _unique(broker, wanted):
        try:
            if problem is not None:
                raise problem
            topic = _find(broker, state)
            quota.record(len(topic.partitions))
        except KafkaError as error:
            results.append(_failure(state, error))
            continue
        found[topic.topic_id] = topic
    try:
        broker.topics.delete(list(found.values()))
        results += [DeletableTopicResult(name=topic.name, topic_id=topic.topic_id) for topic in found.values()]
    except KafkaError as error:
        states = [DeleteTopicState(name=topic.name, topic_id=topic.topic_id) for topic in found.values()]
        results += [_failure(state, error) for state in states]
    context.throttle_ms = max(context.throttle_ms, quota.throttle_ms)
    return DeleteTopicsResponse(throttle_time_ms=context.throttle_ms, responses=results)


def _unique(broker: Broker, wanted: list[DeleteTopicState]) -> list[tuple[DeleteTopicState, KafkaError | None]]:
    """Each topic once: one that is given twice, in whatever way, is an error and is not deleted."""
    counts = Counter((state.name, state.topic_id) for state in wanted)
    unique: list[tuple[DeleteTopicState, KafkaError | None]] = []
    for (name, topic_id), count in counts.items():
        state = DeleteTopicState(name=name, topic_id=topic_id)
        named = None if name is None or topic_id != ZERO_UUID else broker.topics.get(name)
        if count > 1:
            problem = KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named more than once")
            unique.append((state, problem))
        elif named is not None and (None, named.topic_id) in counts:
            problem = KafkaError(ErrorCode.INVALID_REQUEST, "The topic is given by name and by id")
            unique.append((DeleteTopicState(name=name, topic_id=named.topic_id), problem))
        elif name is not None or topic_id == ZERO_UUID or not _is_named(broker, topic_id, counts):
            unique.append((state, None))
    return unique


def _is_named(broker: Broker, topic_id: bytes, counts: Counter[tuple[str | None, bytes]]) -> bool:
    return (broker.topics.topic_name(topic_id), ZERO_UUID) in counts


def _find(broker: Broker, state: DeleteTopicState) -> Topic:
    if state.name is None:
        if state.topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither a name nor an id is given")
        topic = broker.topics.get_by_id(state.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic of this id")
        return topic
    if state.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic must be given by name or by id, not by both")
    topic = broker.topics.get(state.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic")
    return topic


def _failure(state: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=error.code, error_message=error.message or None
    )

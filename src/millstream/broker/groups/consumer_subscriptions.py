"""What the members of a consumer group are subscribed to: topic names, regular expressions, and the topics behind them.

A group notices that topics came, grew or went by a hash over the subscribed topics that exist, which is stored with
the group epoch. The hash is this server's own: a group taken over from Apache Kafka rebalances once, because its hash
differs.

Regular expressions are resolved to topic names by the coordinator (KIP-848), all of a group at the same time. Apache
Kafka does it in the background and hands out the topics with a later heartbeat; here it is done within the heartbeat
that needs it, so that the first response already has the assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.group import TopicsView
from millstream.broker.regular_expressions import InvalidRegularExpression, Pattern
from millstream.wire.errors import ErrorCode, KafkaError


class ResolvedRegularExpression(NamedTuple):
    """The topics an expression stood for when it was resolved."""

    topics: frozenset[str]
    version: int
    """Of the set of topics."""
    timestamp_ms: int


Resolved = Mapping[str, ResolvedRegularExpression]


def subscribed_topics(member: ConsumerGroupMember, resolved: Resolved) -> frozenset[str]:
    """By name or by expression. An expression that is not resolved stands for nothing yet."""
    expression = resolved.get(member.subscribed_topic_regex or "")
    return member.subscribed_topic_names | expression.topics if expression else member.subscribed_topic_names


def all_subscribed_topics(members: Iterable[ConsumerGroupMember], resolved: Resolved) -> frozenset[str]:
    return frozenset().union(*(subscribed_topics(member, resolved) for member in members))


def topic_ids(names: Iterable[str], topics: TopicsView) -> frozenset[bytes]:
    """Of those that exist."""
    return frozenset(topic_id for name in names if (topic_id := topics.topic_id(name)) is not None)


def metadata_hash(names: Iterable[str], topics: TopicsView) -> int:
    """64 bits, signed, that differ when a topic comes, goes, grows or is created anew; 0 if there is none."""
    hasher = blake2b(digest_size=8)
    found = False
    for name in sorted(names):
        topic_id, count = topics.topic_id(name), topics.partition_count(name)
        if topic_id is not None and count is not None:
            found = True
            hasher.update(topic_id + count.to_bytes(4, "big") + name.encode() + b"\0")
    return int.from_bytes(hasher.digest(), "big", signed=True) if found else 0


class PatternCache:
    """Compiled expressions: the same few are matched again each time topics are created."""

    _CAPACITY = 256

    def __init__(self) -> None:
        self._patterns: dict[str, Pattern] = {}

    def pattern(self, expression: str) -> Pattern:
        """INVALID_REGULAR_EXPRESSION if there is no such expression."""
        pattern = self._patterns.get(expression)
        if pattern is None:
            try:
                pattern = Pattern(expression)
            except InvalidRegularExpression as error:
                raise KafkaError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex {expression!r} is not a valid regular expression: {error}",
                ) from error
            if len(self._patterns) >= self._CAPACITY:
                del self._patterns[next(iter(self._patterns))]
            self._patterns[expression] = pattern
        return pattern

    def resolve(self, expressions: Iterable[str], topics: TopicsView, version: int, now_ms: int) -> Resolved:
        names = list(topics.topic_names())
        return {
            expression: ResolvedRegularExpression(self._matched(expression, names), version, now_ms)
            for expression in expressions
        }

    def _matched(self, expression: str, names: Iterable[str]) -> frozenset[str]:
        try:
            pattern = self.pattern(expression)
        except KafkaError:
            return frozenset()  # it was accepted by another version and stands for nothing here
        return frozenset(name for name in names if pattern.matches(name))

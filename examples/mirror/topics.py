"""The topics to mirror: found by a pattern, made on the target with as many partitions and the same configs."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from mirror.offsets import TOPIC

SECONDS = 30.0


def matching(admin: AdminClient, pattern: re.Pattern[str]) -> dict[str, int]:
    """Topic -> partitions; never a topic that Kafka or a mirror keeps for itself."""
    return {
        name: len(topic.partitions)
        for name, topic in sorted(admin.list_topics(timeout=SECONDS).topics.items())
        if pattern.fullmatch(name) and not name.startswith("__") and name != TOPIC
    }


def make_alike(source: AdminClient, target: AdminClient, topic: str, target_topic: str, partitions: int) -> None:
    """The target's topic is there, with at least as many partitions."""
    there = target.list_topics(timeout=SECONDS).topics.get(target_topic)
    if there is None:
        _create(target, target_topic, partitions, own_configs(source, topic))
    elif len(there.partitions) < partitions:
        (answer,) = target.create_partitions([NewPartitions(target_topic, partitions)]).values()
        answer.result(SECONDS)


def own_configs(admin: AdminClient, topic: str) -> dict[str, str]:
    """The configs that were set for this topic."""
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = answer.result(SECONDS).values()
    return {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def _create(admin: AdminClient, topic: str, partitions: int, configs: dict[str, str]) -> None:
    (answer,) = admin.create_topics([NewTopic(topic, partitions, config=configs)]).values()
    try:
        answer.result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another mirror was first
            raise

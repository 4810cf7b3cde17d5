"""The topics of the server: by name and by id, their partitions, their configs, and who is told when they change.

A topic exists if and only if the metadata store has its row, which is written before the first folder of a partition
and removed before the first one is deleted. A partition's log is opened, and its folder made, when somebody first asks
for it; folders that are there already are opened by the log manager at start. What is in memory is never ahead of the
store, so that a failure of the store (KAFKA_STORAGE_ERROR) leaves everything as it was. For the event loop's thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import urandom
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from millstream.broker.configs.dynamic import DynamicConfigs, ResourceType
from millstream.broker.store import MetadataStore, StoredTopic
from millstream.log.clock import Clock
from millstream.log.config import LogConfig
from millstream.log.partition_log import PartitionLog
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import ZERO_UUID

log = get_logger(__name__)

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset((GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC))
MAX_NAME_LENGTH: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_RESERVED_IDS: Final = frozenset((ZERO_UUID, bytes(15) + b"\x01", bytes(15) + b"\x02"))
"""Ids that Kafka gives a meaning of their own: none, the metadata topic, an unknown topic."""


def is_internal(name: str) -> bool:
    """Whether the coordinators own the topic."""
    return name in INTERNAL_TOPICS


def validate_name(name: str) -> None:
    """KafkaError(INVALID_TOPIC_EXCEPTION) if no topic may have this name."""
    problem = None
    if not name:
        problem = "A topic name must not be empty"
    elif name in (".", ".."):
        problem = "A topic name must not be '.' or '..'"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"A topic name must not be longer than {MAX_NAME_LENGTH} characters: {name[:MAX_NAME_LENGTH]}..."
    elif not _NAME.fullmatch(name):
        problem = f"A topic name may have letters, digits, '.', '_' and '-' only: {name!r}"
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


class Logs(Protocol):
    """What topics need of the log manager."""

    def get(self, topic: str, partition: int) -> PartitionLog | None: ...

    def create(self, topic: str, partition: int, topic_id: UUID, config: LogConfig) -> PartitionLog: ...

    def delete(self, topic: str, partition: int) -> None: ...


class Partition:
    """One partition. Its log is opened when it is first asked for."""

    __slots__ = ("_log", "_logs", "index", "leader_epoch", "topic")

    def __init__(self, topic: Topic, index: int, logs: Logs) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = 0
        self._logs = logs
        self._log: PartitionLog | None = None

    @property
    def log(self) -> PartitionLog:
        """KafkaError(KAFKA_STORAGE_ERROR) if it cannot be opened."""
        if self._log is None:
            topic = self.topic
            self._log = self.opened_log or self._logs.create(
                topic.name, self.index, UUID(bytes=topic.topic_id), topic.log_config
            )
        return self._log

    def check_leader_epoch(self, epoch: int) -> None:
        """KafkaError if a client knows another leader epoch than the current one; -1 is a client that knows none."""
        if 0 <= epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > self.leader_epoch:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def opened_log(self) -> PartitionLog | None:
        """The log if it is open already."""
        return self._log or self._logs.get(self.topic.name, self.index)

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"


class Topic:
    """One topic. Lives as long as it is not deleted; `Topics` alone changes it."""

    __slots__ = ("created_ms", "log_config", "name", "overrides", "partitions", "topic_id")

    def __init__(
        self,
        stored: StoredTopic,
        overrides: Mapping[str, str],
        log_config: LogConfig,
        logs: Logs,
    ) -> None:
        self.name = stored.name
        self.topic_id = stored.topic_id
        self.created_ms = stored.created_ms
        self.overrides = overrides
        self.log_config = log_config
        """Shared by the logs of all partitions."""
        self.partitions = [Partition(self, index, logs) for index in range(stored.partitions)]

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"


class NewTopic(NamedTuple):
    """A topic to be made, checked already."""

    name: str
    partitions: int
    configs: Mapping[str, str] = {}


class Topics:
    """All topics. Iterates over them by name."""

    def __init__(self, store: MetadataStore, configs: DynamicConfigs, logs: Logs, clock: Clock) -> None:
        self._store = store
        self._configs = configs
        self._logs = logs
        self._clock = clock
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._unified: dict[str, set[str]] = {}
        """Names with underscores for dots -> the topics that have this name but for that."""
        self.on_created: list[Callable[[Topic], None]] = []
        self.on_deleted: list[Callable[[Topic], None]] = []
        self.on_expanded: list[Callable[[Topic], None]] = []
        for stored in store.topics():
            self._add(stored)
        configs.subscribe(self._configs_changed)

    # --- looking up ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Topic]:
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def get_by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        topic = self._by_name.get(name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def topic_id(self, name: str) -> bytes | None:
        topic = self._by_name.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int | None:
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def topic_names(self) -> Iterable[str]:
        return sorted(self._by_name)

    def partitions(self) -> Iterator[Partition]:
        """All partitions of all topics."""
        for topic in self:
            yield from topic.partitions

    def colliding(self, name: str) -> str | None:
        """A topic whose name differs only in dots and underscores, which metric names cannot tell apart."""
        return next(iter(self._unified.get(name.replace(".", "_"), ())), None)

    # --- changing --------------------------------------------------------------------------------------------------

    def validate_new(self, name: str) -> None:
        """KafkaError if no topic of this name can be made: a bad name, one that is taken or one that collides."""
        validate_name(name)
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"There is a topic {name} already")
        collision = self.colliding(name)
        if collision is not None:
            message = f"The name {name} collides with the topic {collision}: they differ in '.' and '_' only"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)

    def create(self, name: str, partitions: int = -1, configs: Mapping[str, str] | None = None) -> Topic:
        """Makes a topic; -1 partitions are as many as num.partitions says. KafkaError if it cannot be made."""
        self.validate_new(name)
        if partitions == -1:
            partitions = self._configs.int("num.partitions")
        if partitions <= 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"A topic must have at least one partition, not {partitions}"
            )
        self._configs.validate(ResourceType.TOPIC, name, configs or {})
        return self.create_checked([NewTopic(name, partitions, configs or {})])[0]

    def create_automatically(self, name: str) -> Topic:
        """Makes a topic that somebody asked for without creating it first."""
        return self.create_internal(name) if is_internal(name) else self.create(name)

    def create_internal(self, name: str) -> Topic:
        """Makes the topic of a coordinator, with the partitions and the configs that its settings say."""
        return self.create_checked([internal_topic(name, self._configs)])[0]

    def create_checked(self, new_topics: Sequence[NewTopic]) -> list[Topic]:
        """Makes topics that have been checked, all of them or none."""
        now = self._clock.now_ms()
        stored = [StoredTopic(new.name, self.new_id(), new.partitions, now) for new in new_topics]
        self._store.create_topics(zip(stored, (new.configs for new in new_topics), strict=True))
        created = []
        for row, new in zip(stored, new_topics, strict=True):
            self._configs.remember(ResourceType.TOPIC, new.name, new.configs)
            created.append(self._add(row))
        for topic in created:
            for listener in self.on_created:
                listener(topic)
        return created

    def new_id(self) -> bytes:
        """A random id that no topic has. As in Kafka, its text never starts with a dash."""
        while True:
            raw = bytearray(urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            topic_id = bytes(raw)
            if topic_id not in self._by_id and topic_id not in _RESERVED_IDS and raw[0] >> 2 != 62:
                return topic_id

    def delete(self, topics: Sequence[Topic]) -> None:
        """Deletes topics: they are gone when this returns, their files some time later."""
        self._store.delete_topics([topic.name for topic in topics])
        for topic in topics:
            del self._by_name[topic.name]
            del self._by_id[topic.topic_id]
            self._unified[topic.name.replace(".", "_")].discard(topic.name)
            self._configs.remember(ResourceType.TOPIC, topic.name, {})
        for topic in topics:
            for listener in self.on_deleted:
                listener(topic)
            for partition in topic.partitions:
                self._delete_log(partition)

    def add_partitions(self, counts: Mapping[str, int]) -> None:
        """Gives topics more partitions, so that they have as many as given."""
        self._store.set_partitions(counts)
        for name, count in counts.items():
            topic = self._by_name[name]
            topic.partitions += [Partition(topic, i, self._logs) for i in range(len(topic.partitions), count)]
            for listener in self.on_expanded:
                listener(topic)

    def alter_configs(self, name: str, overrides: Mapping[str, str]) -> None:
        """Makes these the configs of a topic and of its logs. KafkaError if they may not be."""
        self._configs.validate(ResourceType.TOPIC, name, overrides)
        self._configs.replace(ResourceType.TOPIC, name, overrides)

    # --- within ----------------------------------------------------------------------------------------------------

    def _add(self, stored: StoredTopic) -> Topic:
        overrides = self._configs.overrides(ResourceType.TOPIC, stored.name)
        log_config = self._configs.topic_log_config(overrides)
        topic = Topic(stored, overrides, log_config, self._logs)
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._unified.setdefault(topic.name.replace(".", "_"), set()).add(topic.name)
        return topic

    def _delete_log(self, partition: Partition) -> None:
        try:
            self._logs.delete(partition.topic.name, partition.index)
        except KafkaError as error:
            # The topic is gone all the same; the folder is swept at the next start.
            log.warning("the folder of a deleted partition stays behind", partition=str(partition), error=error.message)

    def _configs_changed(self, kind: ResourceType, name: str) -> None:
        if kind is ResourceType.TOPIC:
            self._refresh(self._by_name[name])
        elif kind is ResourceType.BROKER:
            for topic in self._by_name.values():
                self._refresh(topic)

    def _refresh(self, topic: Topic) -> None:
        topic.overrides = self._configs.overrides(ResourceType.TOPIC, topic.name)
        log_config = self._configs.topic_log_config(topic.overrides)
        if log_config != topic.log_config:
            topic.log_config = log_config
            for partition in topic.partitions:
                if partition.opened_log is not None:
                    partition.opened_log.update_config(log_config)


def internal_topic(name: str, configs: DynamicConfigs) -> NewTopic:
    """How the topic of a coordinator is made."""
    if name == GROUP_METADATA_TOPIC:
        segment_bytes = str(configs.int("offsets.topic.segment.bytes"))
        own = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment_bytes}
        return NewTopic(name, configs.int("offsets.topic.num.partitions"), own)
    if name == TRANSACTION_STATE_TOPIC:
        own = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(configs.int("transaction.state.log.min.isr")),
            "segment.bytes": str(configs.int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
        return NewTopic(name, configs.int("transaction.state.log.num.partitions"), own)
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is an internal topic that this server does not use")

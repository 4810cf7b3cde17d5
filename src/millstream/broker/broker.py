"""The broker: the parts put together, and the order in which they start and stop.

Start: the data folder is locked and its store opened, the logs are opened (and recovered if the last stop was not
clean), then the coordinators replay their topics. Stop is the reverse. In between `maintain` does what has to be done
from time to time: retention, compaction, flushes by age, checkpoints, expiry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from os import urandom
from pathlib import Path
from uuid import UUID

from millstream.broker import maintenance
from millstream.broker.apis import load_all
from millstream.broker.configs.dynamic import DynamicConfigs, ResourceType
from millstream.broker.configs.listeners import advertised_listeners
from millstream.broker.configs.settings import Settings
from millstream.broker.context import RequestContext
from millstream.broker.features import TRANSACTION_VERSION, Features
from millstream.broker.fetch_sessions import FetchSessions
from millstream.broker.groups.coordinator import GroupCoordinator
from millstream.broker.internal_topics import InternalTopicLog
from millstream.broker.maintenance import Chore
from millstream.broker.markers import PartitionMarkers
from millstream.broker.quotas import Quotas
from millstream.broker.store import MetadataStore
from millstream.broker.timer import LoopTimer
from millstream.broker.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, Topic, Topics
from millstream.broker.transactions.coordinator import TransactionCoordinator
from millstream.broker.transactions.producer_ids import ProducerIds
from millstream.log.clock import SystemClock
from millstream.log.config import LogConfig
from millstream.log.flush import ThreadWorker
from millstream.log.log_cleaner import LogCleaner
from millstream.log.manager import LogManager
from millstream.log.partition_log import PartitionLog
from millstream.logs import get_logger
from millstream.wire.errors import KafkaError
from millstream.wire.message import uuid_text

log = get_logger(__name__)

STORE_NAME = "millstream.db"
WILDCARD_HOSTS = ("", "0.0.0.0", "::")
DELETED_FILES_INTERVAL_MS = 1000
INDEX_FILES_INTERVAL_MS = 5000
SHORTEST_INTERVAL_MS, LONGEST_INTERVAL_MS = 50, 86_400_000
PRODUCER_ID_BLOCK = 1000


class Broker:
    """One node: the whole of a one-node cluster."""

    store: MetadataStore
    configs: DynamicConfigs
    features: Features
    topics: Topics
    quotas: Quotas
    groups: GroupCoordinator
    transactions: TransactionCoordinator

    def __init__(self, settings: Settings, data: Path, *, ephemeral: bool = False) -> None:
        load_all()
        self.settings = settings
        self.data = data
        self.node_id = settings.int("node.id")
        self.rack = settings.str("broker.rack") or None
        self.cluster_id = ""
        self.clock = SystemClock()
        self.timer = LoopTimer(self.clock)
        slots = settings.int("max.incremental.fetch.session.cache.slots")
        self.fetch_sessions = FetchSessions(slots, self.timer.now_ms)
        self.fetch_max_bytes = settings.int("fetch.max.bytes")
        self._ephemeral = ephemeral
        self._advertised = advertised_listeners(settings)
        self._addresses: Mapping[str, tuple[str, int]] = {}

    # --- start, run, stop ---

    def start(self, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Opens the data folder; `addresses` is where the listeners listen. DataFolderLockedError if it is in use."""
        self._addresses = addresses
        call_soon = asyncio.get_running_loop().call_soon_threadsafe
        self._worker = ThreadWorker(call_soon)
        self._cleaner_worker = ThreadWorker(call_soon, "millstream-cleaner")
        self.logs = LogManager(
            str(self.data),
            clock=self.clock,
            worker=self._worker,
            sync=not self._ephemeral,
        )
        self.logs.lock()
        try:
            self._open()
        except BaseException:
            self.logs.release()
            raise

    def _open(self) -> None:
        self.store = MetadataStore(self.data / STORE_NAME)
        self.configs = DynamicConfigs(self.settings, self.store, self.node_id)
        self.features = Features(self.store)
        self.topics = Topics(self.store, self.configs, self.logs, self.clock)
        self.quotas = Quotas(self.store, self.configs, self.timer)
        self.cluster_id = self._cluster_id()
        self.logs.set_producer_expiration(self.configs.int("producer.id.expiration.ms"))
        self.logs.open(self._config_of, self._is_wanted)
        for partition in self.topics.partitions():
            if self.logs.get(partition.topic.name, partition.index) is not None:
                partition.log  # noqa: B018 - opened already: this only connects the two
        if self.logs.scanned_bytes:
            log.info("recovered", scanned_bytes=self.logs.scanned_bytes, truncated_bytes=self.logs.truncated_bytes)
        self.cleaner = LogCleaner(self.logs, self._cleaner_worker, self.configs.int("log.cleaner.dedupe.buffer.size"))
        self._start_coordinators()

    def _start_coordinators(self) -> None:
        group_log = InternalTopicLog(GROUP_METADATA_TOPIC, self.topics, self.timer, self.logs.group_commit)
        self.groups = GroupCoordinator(
            group_log, self.timer, self.topics, self.configs.group_config(), group_setting=self._group_setting
        )
        transaction_log = InternalTopicLog(TRANSACTION_STATE_TOPIC, self.topics, self.timer, self.logs.group_commit)
        self.transactions = TransactionCoordinator(
            transaction_log,
            self.timer,
            ProducerIds(lambda: self.store.allocate_producer_ids(PRODUCER_ID_BLOCK)),
            PartitionMarkers(self.topics, self.groups, self.logs.group_commit),
            self.configs.transaction_config(),
            transaction_version=lambda: self.features.level(TRANSACTION_VERSION),
        )
        self.groups.load(range(self.topics.partition_count(GROUP_METADATA_TOPIC) or 0))
        self.transactions.load(range(self.topics.partition_count(TRANSACTION_STATE_TOPIC) or 0))
        self.transactions.start()
        self.topics.on_created.append(self._topic_changed)
        self.topics.on_expanded.append(self._topic_changed)
        self.topics.on_deleted.append(self._topic_deleted)
        self.configs.subscribe(self._config_changed)

    async def maintain(self) -> None:
        """The upkeep, for ever."""
        logs, every = self.logs, self._every
        await maintenance.maintain(
            [
                Chore("retention", every("log.retention.check.interval.ms"), logs.retain),
                Chore("flush", every("log.flush.scheduler.interval.ms"), logs.flush_due),
                Chore("checkpoints", every("log.flush.offset.checkpoint.interval.ms"), logs.checkpoint),
                Chore("compaction", every("log.cleaner.backoff.ms"), self._compact),
                Chore("index files", lambda: INDEX_FILES_INTERVAL_MS, logs.write_indexes),
                Chore("deleted files", lambda: DELETED_FILES_INTERVAL_MS, logs.remove_deleted),
                Chore("producer expiry", every("producer.id.expiration.check.interval.ms"), logs.expire_producers),
            ],
            self.settings.int("log.initial.task.delay.ms"),
        )

    def _every(self, name: str) -> Callable[[], int]:
        """A config's interval, read anew each time, within what a timer can take and a disk can bear."""
        return lambda: max(SHORTEST_INTERVAL_MS, min(self.configs.int(name), LONGEST_INTERVAL_MS))

    def _compact(self) -> None:
        if self.settings.bool("log.cleaner.enable"):
            self.cleaner.step()

    async def stop(self) -> None:
        self.transactions.stop()
        self.groups.close()
        self.cleaner.stop()
        self._cleaner_worker.close()
        self._worker.close()
        self.logs.close()
        self.store.close()

    # --- what the handlers ask ---

    def endpoint(self, context: RequestContext) -> tuple[str, int]:
        """Where a client of this listener reaches this node."""
        advertised = self._advertised.get(context.listener)
        if advertised is not None:
            return advertised
        host, port = self._addresses[context.listener]
        return (context.local_host if host in WILDCARD_HOSTS else host), port

    async def flush(self, partition_log: PartitionLog) -> None:
        """Until everything appended so far is on disk; shares the fsync with whoever waits at the same time."""
        flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: KafkaError | None) -> None:
            if flushed.done():
                return
            if error is None:
                flushed.set_result(None)
            else:
                flushed.set_exception(error)

        self.logs.group_commit.request(partition_log, done)
        await flushed

    # --- within ---

    def _cluster_id(self) -> str:
        known = self.store.property("cluster.id")
        if known is None:
            known = uuid_text(urandom(16))
            self.store.set_property("cluster.id", known)
        self.logs.identity(node_id=self.node_id, cluster_id=lambda: known)
        return known

    def _config_changed(self, kind: ResourceType, name: str) -> None:
        """The parts get their settings as values, so a change is a new value."""
        if kind is ResourceType.BROKER:
            self.transactions.config = self.configs.transaction_config()
            self.groups.config = self.configs.group_config()
            self.logs.set_producer_expiration(self.configs.int("producer.id.expiration.ms"))
            self.cleaner.memory_bytes = self.configs.int("log.cleaner.dedupe.buffer.size")

    def _config_of(self, topic: str) -> LogConfig:
        known = self.topics.get(topic)
        return known.log_config if known is not None else LogConfig()

    def _is_wanted(self, topic: str, partition: int, topic_id: UUID | None) -> bool:
        """A folder without a topic, or of another topic of that name, is what a crash left of a deletion."""
        known = self.topics.partition(topic, partition)
        return known is not None and (topic_id is None or topic_id.bytes == known.topic.topic_id)

    def _group_setting(self, group_id: str, name: str) -> int | None:
        text = self.configs.overrides(ResourceType.GROUP, group_id).get(name)
        return None if text is None else int(text)

    def _topic_changed(self, topic: Topic) -> None:
        self.groups.on_topics_changed([topic.name])

    def _topic_deleted(self, topic: Topic) -> None:
        self.groups.on_topics_deleted({topic.name: topic.topic_id})

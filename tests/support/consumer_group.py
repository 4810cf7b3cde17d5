"""A world of consumer groups: a coordinator with a manual timer and a log in memory, topics, and honest members.

world = World({"t": 4})
a = world.member("a", "t")
a.join()                       # ConsumerGroupHeartbeat with epoch 0
a.owned                        # what it may consume: {("t", 0), ...}
world.settle(a, b)             # heartbeats until the group is stable
world.restart()                # kill -9: only the log is left
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.broker.context import RequestContext
from millstream.broker.groups import records
from millstream.broker.groups.classic_group import ClassicGroup
from millstream.broker.groups.config import GroupConfig
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.coordinator import GroupCoordinator
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.consumer_group_describe import DescribedGroup
from millstream.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from support.group_coordinator import Topics
from support.manual_timer import ManualTimer
from support.memory_coordinator_log import MemoryCoordinatorLog

Partition = tuple[str, int]


class World:
    """The coordinator under test and everything around it."""

    def __init__(
        self, topics: Mapping[str, int] | None = None, *, settings: Mapping[str, int] | None = None, **config: Any
    ) -> None:
        self.timer = ManualTimer()
        self.log = MemoryCoordinatorLog(timer=self.timer)
        self.topics = Topics({"t": 4} if topics is None else topics)
        self.config = GroupConfig(**config)
        self.settings = dict(settings or {})
        self.later_ids: list[bytes] = []
        """The ids of all topics created later, so that none is given twice."""
        self.coordinator = self._start()

    def _start(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            self.log,
            self.timer,
            self.topics,
            self.config,
            group_setting=lambda group_id, name: self.settings.get(name),
        )
        coordinator.load()
        return coordinator

    def restart(self, *, compacted: bool = False) -> None:
        self.coordinator.close()
        self.timer = ManualTimer(self.timer.now_ms())
        if compacted:
            self.log = self.log.compacted()
        self.coordinator = self._start()

    # --- topics ----------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int) -> None:
        """Also more partitions for one that is there."""
        if name in self.topics.counts:
            self.topics.counts[name] = partitions
        else:
            self.topics.create(name, partitions)
            self.topics.ids[name] = (1_000 + len(self.later_ids)).to_bytes(16, "big")
            self.later_ids.append(self.topics.ids[name])
        self.coordinator.on_topics_changed([name])

    def topic_name(self, topic_id: bytes) -> str:
        """Also of a topic that is gone, for those who still have to let go of it."""
        return self.topics.topic_name(topic_id) or f"deleted {topic_id.hex()}"

    def topic_id(self, name: str) -> bytes:
        return bytes.fromhex(name.removeprefix("deleted ")) if name.startswith("deleted ") else self.topics.ids[name]

    def delete_topic(self, name: str) -> None:
        del self.topics.counts[name]
        self.coordinator.on_topics_changed([name])

    # --- groups ----------------------------------------------------------------------------------------------------

    def group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.coordinator._runtime.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def classic_group(self, group_id: str = "g") -> ClassicGroup:
        group = self.coordinator._runtime.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def has_group(self, group_id: str = "g") -> bool:
        return group_id in self.coordinator._runtime.groups

    def snapshot(self) -> dict[str, object]:
        """All that a restart must not change."""
        return {
            group.group_id: (
                group.group_epoch,
                group.metadata_hash,
                group.assignment_epoch,
                group.assignment_timestamp_ms,
                dict(group.members),
                dict(group.static_members),
                dict(group.target_assignment),
                dict(group.resolved),
                dict(group._owners),
            )
            for group in self.coordinator._runtime.groups.values()
            if isinstance(group, ConsumerGroup)
        }

    def record_types(self) -> list[str]:
        """The names of all records ever written, `-` before a tombstone."""
        decoded = [records.decode_record(record) for record in self.log.records()]
        return [
            ("" if entry[1] is not None else "-") + type(entry[0]).__name__.removesuffix("Key")
            for entry in decoded
            if entry is not None
        ]

    def describe(self, group_id: str = "g") -> DescribedGroup:
        return self.coordinator.consumer_group_describe([group_id])[0]

    def state(self, group_id: str = "g") -> str:
        return self.describe(group_id).group_state

    def send(self, version: int = 1, client_id: str = "client", **fields: Any) -> ConsumerGroupHeartbeatResponse:
        context = RequestContext(api_version=version, client_id=client_id)
        request = ConsumerGroupHeartbeatRequest(**{"group_id": "g", **fields})
        return self.coordinator.consumer_group_heartbeat(request, context)

    def member(self, member_id: str, *topics: str, **options: Any) -> Member:
        return Member(self, member_id, *topics, **options)

    def settle(self, *members: Member, rounds: int = 12) -> None:
        """Everybody heartbeats, a bit more than the assignment interval apart, until all is stable."""
        for _ in range(rounds):
            self.timer.advance(1_100)
            for member in members:
                assert member.beat() == ErrorCode.NONE
            if members and self.state(members[0].group) == "Stable" and not any(member.news for member in members):
                return
        raise AssertionError(f"the group is still {self.state()} after {rounds} rounds")

    def partitions(self, *topics: str) -> set[Partition]:
        return {(topic, number) for topic in topics for number in range(self.topics.counts[topic])}


class Member:
    """A consumer that does what it is told: it revokes before it acknowledges, and rejoins when it is fenced."""

    def __init__(self, world: World, member_id: str, *topics: str, group: str = "g", **options: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.group = group
        self.topics: list[str] | None = list(topics) if topics or "subscribed_topic_regex" not in options else None
        self.options = {"rebalance_timeout_ms": 30_000, **options}
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.assignment: set[Partition] | None = None
        """The last one that was told and has not been acted upon yet."""
        self.news = False
        self.full_next = False
        self.last_sent_ms = 0
        self.response = ConsumerGroupHeartbeatResponse()

    @property
    def instance_id(self) -> str | None:
        value: str | None = self.options.get("instance_id")
        return value

    def full_request(self) -> dict[str, Any]:
        return {"subscribed_topic_names": self.topics, "topic_partitions": self.owned_fields(), **self.options}

    def owned_fields(self) -> list[RequestTopicPartitions]:
        by_topic: dict[bytes, list[int]] = {}
        for topic, number in sorted(self.owned):
            by_topic.setdefault(self.world.topic_id(topic), []).append(number)
        return [RequestTopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in by_topic.items()]

    def send(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        self.last_sent_ms = self.world.timer.now_ms()
        base = {"group_id": self.group, "member_id": self.member_id, "member_epoch": self.epoch}
        return self.world.send(**{**base, "instance_id": self.instance_id, **fields})

    def join(self, **changes: Any) -> ErrorCode:
        self.epoch = 0
        self.owned, self.assignment = set(), None
        return self.take(self.send(**{**self.full_request(), **changes}))

    def beat(self, **changes: Any) -> ErrorCode:
        """Acts upon the last assignment, then one heartbeat that says what is owned."""
        self.act()
        self.news = False
        fields = self.full_request() if self.full_next or self.epoch == 0 else {"topic_partitions": self.owned_fields()}
        return self.take(self.send(**{**fields, **changes}))

    def take(self, response: ConsumerGroupHeartbeatResponse) -> ErrorCode:
        self.response = response
        self.full_next = False
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            self.news = self.epoch != response.member_epoch or response.assignment is not None
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assignment = {
                    (self.world.topic_name(topic.topic_id), number)
                    for topic in response.assignment.topic_partitions
                    for number in topic.partitions
                }
                # Revoking takes time; what is new may be consumed at once.
                if self.assignment >= self.owned:
                    self.act()
        elif code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch, self.owned, self.assignment = 0, set(), None
        return code

    def act(self) -> None:
        if self.assignment is not None:
            self.owned, self.assignment = self.assignment, None

    def leave(self, epoch: int = -1) -> ErrorCode:
        self.owned, self.assignment = set(), None
        response = self.send(member_epoch=epoch)
        self.epoch = 0
        return ErrorCode(response.error_code)

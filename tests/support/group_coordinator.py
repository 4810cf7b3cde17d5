"""A group coordinator with a manual timer and a log in memory, driven the way clients drive it.

groups = Groups()
a = groups.join("g", "a")          # v9 with member.id: MEMBER_ID_REQUIRED is answered by joining again
groups.timer.advance(3_000)        # the initial rebalance delay
a.response.generation_id           # 1; AssertionError while it still waits
groups = groups.restarted()        # the same log, a new coordinator
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from millstream.broker.context import RequestContext
from millstream.broker.coordinator_log import Producer
from millstream.broker.groups.config import GroupConfig
from millstream.broker.groups.coordinator import GroupCoordinator
from millstream.wire.codec import encode
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from millstream.wire.messages.describe_groups import DescribedGroup
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from millstream.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from millstream.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.manual_timer import ManualTimer
from support.memory_coordinator_log import MemoryCoordinatorLog

R = TypeVar("R")


class Topics:
    """A `TopicsView` that a test fills: name to partition count."""

    def __init__(self, topics: Mapping[str, int] | None = None) -> None:
        self.counts: dict[str, int] = {}
        self.ids: dict[str, bytes] = {}
        for name, count in (topics or {}).items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self.counts[name] = count
        self.ids[name] = (len(self.ids) + 1).to_bytes(16, "big")

    def topic_id(self, name: str) -> bytes | None:
        return self.ids.get(name) if name in self.counts else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name in self.counts if self.ids[name] == topic_id), None)

    def partition_count(self, name: str) -> int | None:
        return self.counts.get(name)

    def topic_names(self) -> Iterable[str]:
        return list(self.counts)


class Waiting(Generic[R]):
    """The answer to a request that may wait. A second answer is an error."""

    def __init__(self) -> None:
        self._responses: list[R] = []

    def reply(self, response: R) -> None:
        assert not self._responses, "answered twice"
        self._responses.append(response)

    @property
    def waits(self) -> bool:
        return not self._responses

    @property
    def response(self) -> R:
        assert self._responses, "no answer yet"
        return self._responses[0]


def subscription(*topics: str) -> bytes:
    """A consumer's subscription, version 0, as it stands in JoinGroup."""
    return b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


class Groups:
    """The coordinator under test and short ways to ask it."""

    def __init__(
        self,
        config: GroupConfig | None = None,
        *,
        topics: Topics | None = None,
        timer: ManualTimer | None = None,
        log: MemoryCoordinatorLog | None = None,
    ) -> None:
        self.config = config or GroupConfig()
        self.timer = timer or ManualTimer()
        self.topics = topics or Topics({"t": 4, "u": 2})
        self.log = log or MemoryCoordinatorLog(timer=self.timer)
        self.coordinator = GroupCoordinator(self.log, self.timer, self.topics, self.config)
        self.coordinator.load()

    def restarted(self, *, compacted: bool = False) -> Groups:
        """As after kill -9: only the log is left. The clocks of the old process are stopped."""
        timer = ManualTimer(self.timer.now_ms())
        log = self.log.compacted() if compacted else self.log
        return Groups(self.config, topics=self.topics, timer=timer, log=log)

    # --- the classic protocol --------------------------------------------------------------------------------------

    def join(
        self,
        group: str = "g",
        client: str = "c",
        *,
        member: str = "",
        instance: str | None = None,
        version: int = 9,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
    ) -> Waiting[JoinGroupResponse]:
        """A JoinGroup request; one that is told to come again with its member id does so."""
        chosen = {"range": subscription("t")} if protocols is None else protocols
        waiting: Waiting[JoinGroupResponse] = Waiting()
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in chosen.items()],
        )
        context = RequestContext(api_version=version, client_id=client)
        self.coordinator.join_group(request, context, waiting.reply)
        if not member and not waiting.waits and waiting.response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = waiting.response.member_id
            waiting = Waiting()
            self.coordinator.join_group(request, context, waiting.reply)
        return waiting

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        generation: int | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
    ) -> Waiting[SyncGroupResponse]:
        waiting: Waiting[SyncGroupResponse] = Waiting()
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id if generation is None else generation,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name or joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in (assignments or {}).items()
            ],
        )
        self.coordinator.sync_group(request, waiting.reply)
        return waiting

    def stable(
        self, *clients: str, group: str = "g", instances: bool = False, session_ms: int = 10_000, version: int = 9
    ) -> list[JoinGroupResponse]:
        """A stable group of fresh members, each assigned its own client id as bytes; the leader comes first."""
        joins = [
            self.join(group, client, instance=client if instances else None, session_ms=session_ms, version=version)
            for client in clients
        ]
        for _ in range(len(clients) + 1):
            if any(join.waits for join in joins):
                self.timer.advance(self.config.group_initial_rebalance_delay_ms)
        responses = sorted(
            (join.response for join in joins), key=lambda response: response.leader != response.member_id
        )
        assignments = {join.response.member_id: client.encode() for join, client in zip(joins, clients, strict=True)}
        syncs = [self.sync(response, group=group) for response in responses[1:]]
        syncs.append(self.sync(responses[0], assignments, group=group))
        assert all(sync.response.error_code == ErrorCode.NONE for sync in syncs)
        return responses

    def heartbeat(
        self, joined: JoinGroupResponse, *, group: str = "g", instance: str | None = None, generation: int | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group,
            generation_id=joined.generation_id if generation is None else generation,
            member_id=joined.member_id,
            group_instance_id=instance,
        )
        return error_of(lambda: self.coordinator.heartbeat(request))

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> LeaveGroupResponse:
        """Each member as (member id, group.instance.id)."""
        return self.coordinator.leave_group(
            LeaveGroupRequest(
                group_id=group,
                members=[MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members],
            )
        )

    def describe(self, group: str = "g") -> DescribedGroup:
        return self.coordinator.describe_groups([group], 6)[0]

    def state(self, group: str = "g") -> str:
        return self.describe(group).group_state

    # --- offsets ---------------------------------------------------------------------------------------------------

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        group: str = "g",
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
        with_topic_id: bool = True,
    ) -> ErrorCode:
        """The error of the request or, if there is none, of its last partition."""
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=(self.topics.ids[topic] if with_topic_id else bytes(16)),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=7,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        try:
            response = self.coordinator.offset_commit(request, RequestContext(api_version=version))
        except KafkaError as error:
            return error.code
        return ErrorCode(response.topics[-1].partitions[-1].error_code)

    def commit_in_transaction(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        producer: int = 1,
        group: str = "g",
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str = "",
    ) -> ErrorCode:
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=producer,
            producer_epoch=0,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        try:
            response = self.coordinator.txn_offset_commit(request, RequestContext(api_version=5))
        except KafkaError as error:
            return error.code
        return ErrorCode(response.topics[-1].partitions[-1].error_code)

    def end_transaction(self, *, committed: bool, producer: int = 1, group: str = "g") -> None:
        """The marker in the group's partition, as the transaction coordinator writes it."""
        partition = self.coordinator.partition_for(group)
        self.log.append_marker(partition, Producer(producer, 0), committed=committed)
        self.coordinator.on_transaction_end(partition, producer, committed=committed)

    def offset(self, topic: str = "t", partition: int = 0, *, group: str = "g") -> int:
        """The committed offset; -1 if there is none."""
        return self.fetched(topic, partition, group=group)[0]

    def fetched(
        self, topic: str = "t", partition: int = 0, *, group: str = "g", require_stable: bool = False
    ) -> tuple[int, ErrorCode]:
        request = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        )
        response = self.coordinator.offset_fetch(request, require_stable=require_stable)
        answer = response.topics[0].partitions[0]
        return answer.committed_offset, ErrorCode(answer.error_code)

    def offsets(self, group: str = "g") -> dict[tuple[str, int], int]:
        """All committed offsets of a group, as OffsetFetch without topics tells them."""
        request = OffsetFetchRequestGroup(group_id=group)
        request.topics = None
        response = self.coordinator.offset_fetch(request, require_stable=False)
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }


def error_of(call: Callable[[], object]) -> ErrorCode:
    """The code of the KafkaError that a call raises; NONE if it raises none."""
    try:
        call()
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE

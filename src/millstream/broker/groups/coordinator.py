"""The group coordinator: one method for each API, dispatched by the kind of the group. All state is behind it.

It is synchronous and does no I/O of its own: records go to the injected log, time comes from the injected timer, and
one thread calls it. JoinGroup and SyncGroup may have to wait for other members; they get a `reply` that is called
exactly once, at the latest when a time-out ends the wait or the coordinator closes. Everything else answers at once.

A group id means one group. JoinGroup makes an unknown or an empty group a classic one, ConsumerGroupHeartbeat a
consumer group; a commit from outside of any group makes an unknown one a classic group without members.

`load` replays the log: groups and offsets are as they were last written, members get a whole session to come back, and
offsets of transactions without a marker stay pending. Before it and after `close` the answer to every request is
COORDINATOR_NOT_AVAILABLE.

Not here: whether topics exist and which fields a version has (`broker.apis`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from millstream.broker.context import RequestContext
from millstream.broker.coordinator_log import CoordinatorLog
from millstream.broker.groups.classic import ClassicGroups
from millstream.broker.groups.classic_group import ClassicGroup, JoinReply, SyncReply
from millstream.broker.groups.config import GroupConfig
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_groups import ConsumerGroups
from millstream.broker.groups.consumer_rebalance import GroupSetting
from millstream.broker.groups.group import UNKNOWN_MEMBER_ID, Group, PartitionValidator, TopicsView
from millstream.broker.groups.loading import LogReplay
from millstream.broker.groups.offset_store import CommittedOffset
from millstream.broker.groups.offsets import Offsets
from millstream.broker.groups.runtime import GroupRuntime
from millstream.broker.timer import Timer, TimerHandle
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from millstream.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from millstream.wire.messages.describe_groups import DescribedGroup
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from millstream.wire.messages.list_groups import ListedGroup
from millstream.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from millstream.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from millstream.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from millstream.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

NEW_ERRORS_VERSION_OF_OFFSET_COMMIT = 9
NOT_FOUND_VERSION_OF_DESCRIBE_GROUPS = 6

log = get_logger(__name__)


class GroupMetrics(NamedTuple):
    """What `/metrics` shows."""

    groups: Mapping[tuple[str, str], int]
    """How many groups, by group type and state."""
    members: int
    offsets: int
    """How many committed offsets, of all groups."""


class GroupCoordinator:
    """The coordinator of all groups, since there is one node."""

    def __init__(
        self,
        log: CoordinatorLog,
        timer: Timer,
        topics: TopicsView,
        config: GroupConfig,
        *,
        group_setting: GroupSetting = lambda group_id, name: None,
    ) -> None:
        self._runtime = GroupRuntime(log, timer, topics, config)
        self._classic = ClassicGroups(self._runtime)
        self._consumer = ConsumerGroups(self._runtime, group_setting)
        self._offsets = Offsets(self._runtime, self._classic.new_group)
        self._expiry: TimerHandle | None = None
        self._active = False

    @property
    def config(self) -> GroupConfig:
        return self._runtime.config

    @config.setter
    def config(self, config: GroupConfig) -> None:
        """In effect from the next request on."""
        self._runtime.config = config

    # --- start and stop --------------------------------------------------------------------------------------------

    def load(self, partitions: Iterable[int] | None = None) -> None:
        """Replays the log (by default all its partitions), gives the members their time, and begins to serve."""
        source = self._runtime.log
        replay = LogReplay(source, self._classic, self._consumer, self._offsets)
        for partition in range(source.partition_count()) if partitions is None else partitions:
            replay.replay(partition)
        for group_id in self._offsets.store.groups():
            if group_id not in self._runtime.groups:  # deleted in the log, but not its offsets: they must expire
                self._classic.new_group(group_id)
        for group in list(self._runtime.groups.values()):
            if isinstance(group, ClassicGroup):
                self._classic.loaded(group)
            elif isinstance(group, ConsumerGroup):
                self._consumer.loaded(group)
        self._active = True
        self._schedule_expiry()

    def close(self) -> None:
        """Answers everybody who waits and stops all clocks."""
        self._active = False
        if self._expiry is not None:
            self._expiry.cancel()
        for group in self._runtime.groups.values():
            if isinstance(group, ClassicGroup):
                self._classic.close(group)
            else:
                group.cancel_timers()

    # --- the classic protocol --------------------------------------------------------------------------------------

    def join_group(self, request: JoinGroupRequest, context: RequestContext, reply: JoinReply) -> None:
        config = self._runtime.config
        shortest_ms, longest_ms = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        try:
            self._check_request(request.group_id)
            if not shortest_ms <= request.session_timeout_ms <= longest_ms:
                raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
            group = self._runtime.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup) and not group.is_empty():
                response = self._consumer.classic_members.join(group, request, context)
            else:
                self._classic.join(self._group_to_join(group, request), request, context, reply)
                return
        except KafkaError as error:
            response = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
        reply(response)

    def _group_to_join(self, group: Group | None, request: JoinGroupRequest) -> ClassicGroup:
        """An unknown group, or an empty one of the other kind, becomes a classic group with its first new member."""
        if isinstance(group, ClassicGroup):
            return group
        if request.member_id != UNKNOWN_MEMBER_ID:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        created = self._classic.create(request.group_id, [] if group is None else group.tombstones())
        if group is not None:
            group.cancel_timers()
        return created

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        try:
            group = self._group_of_member(request.group_id)
            if isinstance(group, ClassicGroup):
                self._classic.sync(group, request, reply)
                return
            response = self._consumer.classic_members.sync(group, request)
        except KafkaError as error:
            response = SyncGroupResponse(error_code=error.code)
        reply(response)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """Returns if all is well; KafkaError: what the member has to know."""
        group = self._group_of_member(request.group_id)
        if isinstance(group, ClassicGroup):
            self._classic.heartbeat(group, request)
        else:
            self._consumer.classic_members.heartbeat(group, request)

    def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        try:
            self._check_request(request.group_id)
            group = self._runtime.groups.get(request.group_id)
            if isinstance(group, ClassicGroup):
                return self._classic.leave(group, request)
            if isinstance(group, ConsumerGroup):
                return self._consumer.classic_members.leave(group, request)
        except KafkaError as error:
            return LeaveGroupResponse(error_code=error.code)
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=unknown
                )
                for member in request.members
            ]
        )

    def _group_of_member(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """For requests of members: where there is no group, or none with members, it is the member that is unknown."""
        self._check_request(group_id)
        group = self._runtime.groups.get(group_id)
        if group is None or group.is_empty():
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no group {group_id} with members.")
        assert isinstance(group, ClassicGroup | ConsumerGroup)
        return group

    def _check_request(self, group_id: str) -> None:
        self._check_active()
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)

    def _check_active(self) -> None:
        if not self._active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # --- the consumer protocol -------------------------------------------------------------------------------------

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            self._check_active()
            return self._consumer.heartbeat(request, context)
        except KafkaError as error:
            return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)

    def consumer_group_describe(self, group_ids: list[str]) -> list[DescribedConsumerGroup]:
        if not self._active:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return [DescribedConsumerGroup(group_id=group_id, error_code=error) for group_id in group_ids]
        return self._consumer.describe(group_ids)

    # --- offsets ---------------------------------------------------------------------------------------------------

    def offset_commit(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """KafkaError: the error of every partition in the request."""
        self._check_active()
        group = self._runtime.groups.get(request.group_id)
        validate_partition: PartitionValidator | None = None
        if group is not None:
            validate_partition = group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id_or_member_epoch,
                transactional=False,
                api_version=context.api_version,
            )
            if isinstance(group, ClassicGroup):
                self._classic.touch(group, request.member_id)
        elif request.generation_id_or_member_epoch >= 0:
            if context.api_version >= NEW_ERRORS_VERSION_OF_OFFSET_COMMIT:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {request.group_id}.")
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return self._offsets.commit(request, validate_partition)

    def txn_offset_commit(self, request: TxnOffsetCommitRequest, context: RequestContext) -> TxnOffsetCommitResponse:
        """KafkaError: the error of every partition. Whether the transaction may write is checked before."""
        self._check_request(request.group_id)
        group = self._runtime.groups.get(request.group_id)
        try:
            validate_partition: PartitionValidator | None = None
            if group is not None:
                validate_partition = group.validate_offset_commit(
                    request.member_id,
                    request.group_instance_id,
                    request.generation_id,
                    transactional=True,
                    api_version=context.api_version,
                )
            elif request.generation_id >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            return self._offsets.commit_transactional(request, validate_partition)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise

    def offset_fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """One group of a request. KafkaError: the error of the group."""
        self._check_active()
        return self._offsets.fetch(request, require_stable=require_stable)

    def offset_delete(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        try:
            self._check_request(request.group_id)
            group = self._existing(request.group_id)
            group.validate_offset_delete()
            return self._offsets.delete(group, request)
        except KafkaError as error:
            return OffsetDeleteResponse(error_code=error.code)

    def on_transaction_end(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a transaction has been written to this partition of `__consumer_offsets`."""
        self._offsets.store.end_transaction(partition, producer_id, committed=committed)

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        """Offsets of deleted topics (name to topic id) are deleted. Storage trouble is logged: they expire in time."""
        try:
            self._offsets.remove_topics(dict(topics))
        except KafkaError as error:
            log.warning("offsets of deleted topics could not be removed", error=str(error))
        self.on_topics_changed(topics)

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Topics were created or got more partitions: consumer groups may have more to assign."""
        self._consumer.topics_changed(names)

    # --- administration --------------------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` in which a group lives; the topic is created on first use."""
        return self._runtime.log.partition_for(group_id)

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Filters compare without regard to case; an empty one lets everything pass."""
        self._check_active()
        wanted_states = {state.lower().strip() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        return [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state_name(),
                group_type=group.group_type,
            )
            for group in self._runtime.groups.values()
            if (not wanted_states or group.state_name().lower() in wanted_states)
            and (not wanted_types or group.group_type in wanted_types)
        ]

    def describe_groups(self, group_ids: Iterable[str], api_version: int) -> list[DescribedGroup]:
        """Classic groups; to this API a group of another kind does not exist, and is dead."""
        return [self._describe(group_id, api_version) for group_id in group_ids]

    def _describe(self, group_id: str, api_version: int) -> DescribedGroup:
        if not self._active:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group = self._runtime.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.describe(group)
        described = DescribedGroup(group_id=group_id, group_state="Dead")
        if api_version >= NOT_FOUND_VERSION_OF_DESCRIBE_GROUPS:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = (
                f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
            )
        return described

    def delete_group(self, group_id: str) -> None:
        """Deletes a group without members, and its offsets. KafkaError if it cannot be."""
        self._check_active()
        group = self._existing(group_id)
        group.validate_delete()
        self._delete(group, self._offsets.store.known(group_id))

    def _existing(self, group_id: str) -> Group:
        group = self._runtime.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _delete(self, group: Group, offsets: list[tuple[str, int]]) -> None:
        self._offsets.remove(group.group_id, offsets, also=group.tombstones())
        group.cancel_timers()
        self._runtime.groups.pop(group.group_id, None)

    # --- expiry ----------------------------------------------------------------------------------------------------

    def _schedule_expiry(self) -> None:
        self._expiry = self._runtime.timer.call_later(
            self._runtime.config.offsets_retention_check_interval_ms, self._expire
        )

    def _expire(self) -> None:
        """Offsets that nobody needs any more, and groups that have none left and no members."""
        for group in list(self._runtime.groups.values()):
            try:
                offsets, all_expired = self._offsets.expired(group)
                if all_expired and group.is_empty():
                    self._delete(group, offsets)
                elif offsets:
                    self._offsets.remove(group.group_id, offsets)
            except KafkaError as error:
                log.warning("expired offsets could not be removed", group=group.group_id, error=str(error))
        self._schedule_expiry()

    # --- metrics ---------------------------------------------------------------------------------------------------

    def metrics(self) -> GroupMetrics:
        groups = self._runtime.groups.values()
        return GroupMetrics(
            groups=Counter((group.group_type, group.state_name()) for group in groups),
            members=sum(group.member_count for group in groups),
            offsets=self._offsets.store.count(),
        )

    def committed_offsets(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """By topic and partition: what a group's lag is computed from."""
        return self._offsets.store.of_group(group_id)

    def group_ids(self) -> list[str]:
        return list(self._runtime.groups)

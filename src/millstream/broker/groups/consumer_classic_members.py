"""Members of the classic protocol within a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, translated.

They are there while a group migrates. A JoinGroup is what a heartbeat with subscription and owned partitions is to
the other members; its generation is the member's epoch, and there is never a leader, because the coordinator assigns.
SyncGroup answers with the current assignment. A Heartbeat is answered REBALANCE_IN_PROGRESS whenever the member has a
step of its reconciliation to make, which it does by joining again. No request waits.
"""

from __future__ import annotations

from uuid import uuid4

from millstream.broker.context import RequestContext
from millstream.broker.groups.consumer_embedded_protocol import (
    owned_by_id,
    read_subscription,
    read_version,
    write_assignment,
)
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.consumer_migration import ConsumerMigration
from millstream.broker.groups.consumer_rebalance import ConsumerRebalance, MemberUpdate
from millstream.broker.groups.consumer_sessions import ConsumerSessions
from millstream.broker.groups.consumer_states import MemberState
from millstream.broker.groups.consumer_timers import TimerKind
from millstream.broker.groups.group import CONSUMER_PROTOCOL_TYPE, UNKNOWN_MEMBER_ID
from millstream.broker.groups.runtime import GroupRuntime
from millstream.wire.codec import MalformedMessage
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from millstream.wire.messages.group_records import ClassicMemberMetadata, ClassicProtocol
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_MEMBER_ID_REQUIRED_VERSION = 4


class ClassicMembers:
    """The classic protocol on consumer groups that have members. KafkaError: the error of the response."""

    def __init__(
        self,
        runtime: GroupRuntime,
        rebalance: ConsumerRebalance,
        sessions: ConsumerSessions,
        migration: ConsumerMigration,
    ) -> None:
        self._runtime = runtime
        self._rebalance = rebalance
        self._sessions = sessions
        self._migration = migration

    # --- JoinGroup ---------------------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
        subscription = self._validate_join(group, request)
        is_new = request.member_id == UNKNOWN_MEMBER_ID
        member_id = str(uuid4()) if is_new else request.member_id
        if is_new and request.group_instance_id is None and context.api_version >= _MEMBER_ID_REQUIRED_VERSION:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        previous = None
        if request.group_instance_id is None:
            old = group.members.get(member_id) or ConsumerGroupMember(member_id)
        elif not is_new:
            old = self._sessions.static_member(group, member_id, request.group_instance_id)
        else:
            previous = group.static_member(request.group_instance_id)
            old = (previous or ConsumerGroupMember(member_id))._replace(member_id=member_id)
            if previous is not None:
                old = old._replace(member_epoch=0, previous_member_epoch=0)
        update = MemberUpdate(group, old, _updated(old, request, subscription, context))
        if previous is not None:
            self._rebalance.replace_static_member(update, previous)
        changed = self._rebalance.update_subscription(update)
        self._rebalance.reconcile(update, owned_by_id(subscription, self._runtime.topics), changed)
        group = self._rebalance.commit_update(update)
        member = update.member
        group.timers.cancel(member.member_id, TimerKind.JOIN)
        self._sessions.heard_from(group, member, request.session_timeout_ms)
        self._sessions.watch_sync(group, member, request.rebalance_timeout_ms)
        if previous is not None and not previous.uses_classic_protocol:
            # It may have been the last one of the consumer protocol.
            self._migration.downgrade_without(group, set())
        return JoinGroupResponse(
            member_id=member.member_id,
            generation_id=member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )

    def _validate_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
        if not self._migration.enabled:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "group.consumer.migration.policy forbids it")
        maximum = self._runtime.config.group_consumer_max_size
        if len(group.members) >= maximum and request.member_id not in group.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        supported, classic_members = group.classic_protocols(), group.classic_member_count()
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not any(
            supported[protocol.name] == classic_members for protocol in request.protocols
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            return read_subscription(bytes(request.protocols[0].metadata))
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error

    # --- SyncGroup, Heartbeat ----------------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        member, metadata = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        protocol = metadata.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol.name,
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._sessions.watch_rejoin(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        group.timers.cancel(member.member_id, TimerKind.SYNC)
        self._sessions.heard_from(group, member, metadata.session_timeout_ms)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(
                member.assigned_partitions, self._runtime.topics, read_version(protocol.metadata)
            ),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> None:
        member, metadata = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._sessions.heard_from(group, member, metadata.session_timeout_ms)
        if (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_release(member))
        ):
            self._sessions.watch_rejoin(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = self._sessions.static_member(group, member_id, instance_id)
        if member.classic_member_metadata is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} does not use the classic protocol")
        if member.member_epoch != generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member, member.classic_member_metadata

    # --- LeaveGroup --------------------------------------------------------------------------------------------------

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Members of either protocol: an administrator may remove static ones by their instance id alone."""
        responses, gone = [], set()
        for identity in request.members:
            error = ErrorCode.NONE
            try:
                gone.add(self._leaving(group, identity).member_id)
            except KafkaError as refusal:
                error = refusal.code
            responses.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
        self._sessions.remove(group, gone, "they left")
        return LeaveGroupResponse(members=responses)

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
        if identity.group_instance_id is None:
            return group.member(identity.member_id)
        member_id = identity.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            member_id = group.static_members.get(identity.group_instance_id, UNKNOWN_MEMBER_ID)
        return self._sessions.static_member(group, member_id, identity.group_instance_id)


def _updated(
    member: ConsumerGroupMember,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
    context: RequestContext,
) -> ConsumerGroupMember:
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=context.client_id,
        client_host=context.client_host,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=protocol.name, metadata=bytes(protocol.metadata)) for protocol in request.protocols
            ],
        ),
    )

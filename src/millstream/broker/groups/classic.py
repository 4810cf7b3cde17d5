"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup on classic groups.

The clients assign: the coordinator only brings all members to the same generation, lets the leader's assignment
pass through, and notices who is gone. `classic_group` has the state, `classic_rebalance` the barriers and clocks; here
is what each request means in each state. The facade sees to it that the group is a classic one (or none yet).

Departures from Apache Kafka, all where its requests would wait for ever: a JoinGroup or SyncGroup that a newer one of
the same member displaces is answered REBALANCE_IN_PROGRESS, and a waiting SyncGroup of a removed member
UNKNOWN_MEMBER_ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from millstream.broker.context import RequestContext
from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups.classic_group import ClassicGroup, JoinReply, SyncReply
from millstream.broker.groups.classic_member import ClassicMember
from millstream.broker.groups.classic_rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicRebalance
from millstream.broker.groups.classic_states import ClassicState
from millstream.broker.groups.group import UNKNOWN_MEMBER_ID
from millstream.broker.groups.runtime import GroupRuntime
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.describe_groups import DescribedGroup
from millstream.wire.messages.group_records import GroupMetadataKey, GroupMetadataValue
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4
SKIP_ASSIGNMENT_VERSION = 9


class ClassicGroups:
    """All classic groups of this coordinator, in the runtime's table."""

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._rebalance = ClassicRebalance(runtime)

    def new_group(self, group_id: str) -> ClassicGroup:
        """A group without members, not yet in the log: a simple consumer's, known by its offsets alone."""
        group = ClassicGroup(group_id, self._runtime.timer.now_ms())
        self._runtime.groups[group_id] = group
        return group

    # --- JoinGroup -------------------------------------------------------------------------------------------------

    def create(self, group_id: str, predecessor: Sequence[KeyValue]) -> ClassicGroup:
        """A new group, written to the log together with the tombstones of the empty group it takes the place of."""
        group = ClassicGroup(group_id, self._runtime.timer.now_ms())
        self._runtime.append(group_id, [*predecessor, group.record({})])
        self._runtime.groups[group_id] = group
        return group

    def join(self, group: ClassicGroup, request: JoinGroupRequest, context: RequestContext, reply: JoinReply) -> None:
        member_id = request.member_id
        if not self._accepts(group, member_id):
            group.remove(member_id)
            reply(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif group.state is ClassicState.DEAD:
            reply(JoinGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id=member_id))
        elif not group.supports_protocols(request.protocol_type, request.protocols):
            reply(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=member_id))
        elif member_id == UNKNOWN_MEMBER_ID:
            self._join_new(group, request, context, reply)
        elif member_id in group.pending_members:
            if request.group_instance_id is None:
                self._add(group, member_id, request, context, reply)
            else:  # static members are never pending: no client does this
                reply(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, member_id=member_id))
        else:
            try:
                group.validate_member(member_id, request.group_instance_id)
            except KafkaError as error:
                reply(JoinGroupResponse(error_code=error.code, member_id=member_id, protocol_name=None))
                return
            self._rejoin(group, request, reply)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """group.max.size: in a rebalance those who came first may stay, otherwise those who are members."""
        maximum = self._runtime.config.group_max_size
        if group.state is ClassicState.PREPARING_REBALANCE:
            return member_id in group.awaiting_join or len(group.awaiting_join) < maximum
        if group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            return group.has_member(member_id) or len(group.members) < maximum
        return True

    def _join_new(
        self, group: ClassicGroup, request: JoinGroupRequest, context: RequestContext, reply: JoinReply
    ) -> None:
        instance_id = request.group_instance_id
        new_member_id = f"{context.client_id if instance_id is None else instance_id}-{uuid4()}"
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static(group, request, context, new_member_id, reply)
        elif instance_id is None and context.api_version >= MEMBER_ID_REQUIRED_VERSION:
            # KIP-394: the member has to come again with its id, so that lost responses leave no ghosts behind.
            group.pending_members.add(new_member_id)
            self._rebalance.reschedule_session(group, new_member_id, request.session_timeout_ms)
            reply(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_member_id))
        else:
            self._add(group, new_member_id, request, context, reply)

    def _add(
        self, group: ClassicGroup, member_id: str, request: JoinGroupRequest, context: RequestContext, reply: JoinReply
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
        )
        member.is_new = True
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.new_member_added = True
        group.add(member, reply)
        self._rebalance.reschedule_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, f"{member_id} joins ({request.reason or 'no reason given'})")

    def _rejoin(self, group: ClassicGroup, request: JoinGroupRequest, reply: JoinReply) -> None:
        member = group.members[request.member_id]
        unchanged = member.matches(request.protocols)
        if group.state is ClassicState.COMPLETING_REBALANCE and unchanged:
            # Its JoinGroup response may have been lost: the generation has not changed since.
            reply(group.joined_response(member.member_id))
        elif group.state is ClassicState.STABLE and unchanged and group.leader != member.member_id:
            reply(group.joined_response(member.member_id))
        else:
            # New subscription; or the leader, who also rejoins when only the topics have changed.
            group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
            group.await_join(member.member_id, reply)
            self._rebalance.prepare_or_complete(
                group, f"{member.member_id} rejoins ({request.reason or 'no reason given'})"
            )

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        context: RequestContext,
        new_member_id: str,
        reply: JoinReply,
    ) -> None:
        """A restarted static member takes its old place; a stable group need not be disturbed by that (KIP-345)."""
        old_member_id = group.static_members[request.group_instance_id or ""]
        old_leader = group.leader
        old = group.members[old_member_id]
        before = (old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
        member = group.replace_static_member(old_member_id, new_member_id)
        group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        self._rebalance.reschedule_session(group, new_member_id)
        if group.state is not ClassicState.STABLE or group.select_protocol() != group.protocol_name:
            group.await_join(new_member_id, reply)
            self._rebalance.prepare_or_complete(group, f"static member {request.group_instance_id} came back")
            return
        try:
            self._runtime.append(group.group_id, [group.record(_assignments(group))])
        except KafkaError as error:
            restored = group.replace_static_member(new_member_id, old_member_id)
            group.update(restored, *before)
            self._rebalance.reschedule_session(group, old_member_id)
            response = group.joined_response(UNKNOWN_MEMBER_ID)
            response.error_code = error.code
            reply(response)
            return
        response = group.joined_response(new_member_id)
        if context.api_version >= SKIP_ASSIGNMENT_VERSION:
            response.skip_assignment = group.leader == new_member_id
        else:
            # Such a client would assign anew if it were told that it leads; so it is told of its former self.
            response.leader = old_leader or ""
            response.members = []
        reply(response)

    # --- SyncGroup, Heartbeat --------------------------------------------------------------------------------------

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, reply: SyncReply) -> None:
        try:
            self._validate_sync(group, request)
        except KafkaError as error:
            reply(SyncGroupResponse(error_code=error.code))
            return
        member = group.members[request.member_id]
        if group.state is ClassicState.PREPARING_REBALANCE:
            reply(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            return
        self._rebalance.synced(group, member.member_id)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            group.await_sync(member.member_id, reply)
            if group.leader == member.member_id:
                self._rebalance.complete_sync(group, {a.member_id: a.assignment for a in request.assignments})
        else:
            reply(
                SyncGroupResponse(
                    protocol_type=group.protocol_type_or_none,
                    protocol_name=group.protocol_name,
                    assignment=member.assignment,
                )
            )

    def _validate_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        if group.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for asked, agreed in (
            (request.protocol_type, group.protocol_type_or_none),
            (request.protocol_name, group.protocol_name),
        ):
            if asked is not None and agreed is not None and asked != agreed:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> None:
        """Raises KafkaError with what the member has to know."""
        if group.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.reschedule_session(group, request.member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def touch(self, group: ClassicGroup, member_id: str) -> None:
        """An offset commit shows that a member lives, as much as a heartbeat does."""
        if group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            self._rebalance.reschedule_session(group, member_id)

    # --- LeaveGroup ------------------------------------------------------------------------------------------------

    def leave(self, group: ClassicGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
        if group.state is ClassicState.DEAD:
            return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        responses = [self._leave_one(group, identity) for identity in request.members]
        gone = [response.member_id for response in responses if response.error_code == ErrorCode.NONE]
        if gone:
            if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
                self._rebalance.prepare_or_complete(group, f"{', '.join(gone)} left")
            else:
                self._rebalance.complete_join_if_ready(group)
        return LeaveGroupResponse(members=responses)

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
        """An administrator names a static member by its group.instance.id alone."""
        member_id, instance_id = identity.member_id, identity.group_instance_id
        error = ErrorCode.NONE
        if member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
            current = group.static_members.get(instance_id)
            if current is None:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            else:
                group.remove(current)
        elif member_id in group.pending_members:
            group.remove(member_id)
        else:
            try:
                group.validate_member(member_id, instance_id)
                group.remove(member_id)
            except KafkaError as refusal:
                error = refusal.code
        return MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)

    # --- description and life cycle --------------------------------------------------------------------------------

    def describe(self, group: ClassicGroup) -> DescribedGroup:
        agreed = group.protocol_name if group.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name(),
            protocol_type=group.protocol_type,
            protocol_data=agreed or "",
            members=[member.described(agreed) for member in group.members.values()],
        )

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """A record met at start. Timers start with `loaded`, when the last record of a group is known."""
        if value is not None:
            self._runtime.groups[key.group] = ClassicGroup.from_record(key.group, value)
        elif isinstance(self._runtime.groups.get(key.group), ClassicGroup):
            del self._runtime.groups[key.group]

    def loaded(self, group: ClassicGroup) -> None:
        """Members of before the restart get a whole session to show up again."""
        for member_id in group.members:
            self._rebalance.reschedule_session(group, member_id)
        if len(group.members) > self._runtime.config.group_max_size:
            self._rebalance.prepare(group, "the group is larger than group.max.size")

    def close(self, group: ClassicGroup) -> None:
        """The coordinator stops: nobody is left waiting."""
        group.cancel_timers()
        group.transition_to(ClassicState.DEAD, self._runtime.timer.now_ms())
        error = ErrorCode.NOT_COORDINATOR
        for member_id in list(group.members):
            group.reply_join(member_id, JoinGroupResponse(error_code=error, member_id=member_id))
            group.reply_sync(member_id, SyncGroupResponse(error_code=error))


def _assignments(group: ClassicGroup) -> dict[str, bytes]:
    return {member.member_id: member.assignment for member in group.members.values()}

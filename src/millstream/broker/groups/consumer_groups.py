"""The consumer group protocol of KIP-848: ConsumerGroupHeartbeat and ConsumerGroupDescribe.

One API does everything. Member epoch 0 joins, -1 leaves, -2 is a static member that will be back; with its own epoch a
member shows that it lives, reports what it owns, changes its subscription, and is told its assignment when that
changed or when it sent a full request. Requests are checked here, worked out by `consumer_rebalance`, and written and
replayed before they are answered. A member whose session or whose time to revoke has run out is removed.

Departure from Apache Kafka: a static member that repeats its join with the same member id (its response was lost) is
taken back; Kafka answers UNRELEASED_INSTANCE_ID, which is fatal for the client.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from millstream.broker.context import RequestContext
from millstream.broker.groups import consumer_records
from millstream.broker.groups.consumer_classic_members import ClassicMembers
from millstream.broker.groups.consumer_describe import described
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupMember,
)
from millstream.broker.groups.consumer_migration import ConsumerMigration
from millstream.broker.groups.consumer_rebalance import (
    ConsumerRebalance,
    GroupSetting,
    MemberUpdate,
    no_group_setting,
)
from millstream.broker.groups.consumer_replay import apply_record
from millstream.broker.groups.consumer_sessions import ConsumerSessions
from millstream.broker.groups.runtime import GroupRuntime
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.message import Message
from millstream.wire.messages.consumer_group_describe import DescribedGroup
from millstream.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

_CLIENT_MAKES_MEMBER_ID_VERSION = 1

log = get_logger(__name__)


class ConsumerGroups:
    """All consumer groups of this coordinator, in the runtime's table."""

    def __init__(self, runtime: GroupRuntime, setting: GroupSetting = no_group_setting) -> None:
        self._runtime = runtime
        self._rebalance = ConsumerRebalance(runtime, setting)
        self._sessions = ConsumerSessions(runtime, self._rebalance)
        self._migration = ConsumerMigration(runtime, self._sessions)
        self.classic_members = ClassicMembers(runtime, self._rebalance, self._sessions, self._migration)

    # --- ConsumerGroupHeartbeat --------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            self._validate(request, context.api_version)
            if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                return self._leave(request)
            return self._heartbeat(request, context)
        except KafkaError as error:
            return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)

    def _validate(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        joins = request.member_epoch == JOIN_EPOCH
        must_name_itself = (
            version >= _CLIENT_MAKES_MEMBER_ID_VERSION
            or request.member_epoch > JOIN_EPOCH
            or request.member_epoch == LEAVE_EPOCH
        )
        refusals = (
            (must_name_itself and _is_blank(request.member_id), "MemberId is empty"),
            (_is_blank(request.group_id), "GroupId is empty"),
            (_is_blank(request.instance_id), "InstanceId is empty"),
            (_is_blank(request.rack_id), "RackId is empty"),
            (joins and request.rebalance_timeout_ms == -1, "a joining member must give its RebalanceTimeoutMs"),
            (
                joins and (request.topic_partitions is None or bool(request.topic_partitions)),
                "a joining member must own no partitions, TopicPartitions is to be an empty list",
            ),
            (
                joins and request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
                "a joining member must give SubscribedTopicNames or SubscribedTopicRegex",
            ),
            (request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None, "InstanceId is missing"),
            (request.member_epoch < STATIC_LEAVE_EPOCH, f"{request.member_epoch} is not a MemberEpoch"),
        )
        for refused, message in refusals:
            if refused:
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        assignors = self._runtime.config.group_consumer_assignors
        if request.server_assignor is not None and request.server_assignor not in assignors:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"there is no ServerAssignor {request.server_assignor}, only {', '.join(assignors)}",
            )

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> ConsumerGroupHeartbeatResponse:
        update = self._update_for(request, context)
        subscription_changed = self._rebalance.update_subscription(update)
        self._rebalance.reconcile(update, request.topic_partitions, subscription_changed)
        replaced_group = update.replaced_group
        group = self._rebalance.commit_update(update)
        if replaced_group is not None:
            self._migration.upgraded(replaced_group, group)
        member = update.member
        if request.member_epoch == JOIN_EPOCH:
            log.info("member joins", group=group.group_id, member=member.member_id, epoch=member.member_epoch)
        self._sessions.heard_from(group, member, self._rebalance.session_timeout_ms(group.group_id))
        if update.reconciled:
            self._sessions.watch_revocation(group, member)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._rebalance.heartbeat_interval_ms(group.group_id),
        )
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        if (
            request.member_epoch == JOIN_EPOCH
            or is_full
            or update.old.assigned_partitions != member.assigned_partitions
        ):
            response.assignment = _assignment(member)
        return response

    def _update_for(self, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> MemberUpdate:
        """Finds or creates group and member, if the request may have them, and takes over what it says."""
        joins = request.member_epoch == JOIN_EPOCH
        existing = self._runtime.groups.get(request.group_id)
        replaced_group = None
        if isinstance(existing, ConsumerGroup):
            group = existing
        elif not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {request.group_id}")
        elif existing is None:
            group = ConsumerGroup(request.group_id)
        else:
            group, replaced_group = self._migration.consumer_group_for(existing), existing
        maximum = self._runtime.config.group_consumer_max_size
        if len(group.members) >= maximum and request.member_id not in group.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has its maximum of {maximum} members")
        member_id = request.member_id or str(uuid4())
        previous = None
        if request.instance_id is None:
            old = self._dynamic_member(group, member_id, joins)
        else:
            old, previous = self._static_member(group, member_id, request.instance_id, joins)
        if not joins:
            _validate_epoch(old, request)
        update = MemberUpdate(group, old, _updated(old, request, context))
        update.replaced_group = replaced_group
        if replaced_group is not None:
            update.changes += self._migration.changes_for(group)
        if previous is not None:
            self._rebalance.replace_static_member(update, previous)
        return update

    def _dynamic_member(self, group: ConsumerGroup, member_id: str, joins: bool) -> ConsumerGroupMember:
        if joins:
            return group.members.get(member_id) or ConsumerGroupMember(member_id)
        return group.member(member_id)

    def _static_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str, joins: bool
    ) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
        """The member, and the one it replaces if that has left for a while (or speaks the classic protocol)."""
        existing = group.static_member(instance_id)
        if not joins:
            return self._sessions.static_member(group, member_id, instance_id), None
        if existing is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id), None
        if existing.member_epoch != STATIC_LEAVE_EPOCH and not existing.uses_classic_protocol:
            if existing.member_id != member_id:
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"instance id {instance_id} is in use by member {existing.member_id}, not {member_id}",
                )
            return existing, None
        return existing._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0), existing

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        group = self.group(request.group_id)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = self._sessions.static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            away = member.departed_for_a_while()
            self._rebalance.commit(group.group_id, [consumer_records.current_assignment(group.group_id, away)])
            log.info("static member leaves for a while", group=group.group_id, member=member.member_id)
        else:
            self._sessions.remove(group, {member.member_id}, "it left")
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    # --- ConsumerGroupDescribe ---------------------------------------------------------------------------------------

    def group(self, group_id: str) -> ConsumerGroup:
        group = self._runtime.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            missing = "there is no group" if group is None else "not a consumer group:"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{missing} {group_id}")
        return group

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        return [self._describe(group_id) for group_id in group_ids]

    def _describe(self, group_id: str) -> DescribedGroup:
        if not group_id:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            group = self.group(group_id)
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return described(group, self._rebalance.assignor_of(group), self._runtime.topics)

    # --- life cycle --------------------------------------------------------------------------------------------------

    def topics_changed(self, names: Iterable[str]) -> None:
        """To be called after topics were created, got more partitions or were deleted."""
        self._rebalance.topics_changed(names)

    def replay(self, key: Message, value: Message | None) -> None:
        """A record met at start, its key one of `ConsumerGroupKey`."""
        apply_record(self._runtime.groups, key, value)

    def loaded(self, group: ConsumerGroup) -> None:
        """Everything is replayed: members of before the restart get a whole session to show up again."""
        self._sessions.loaded(group)


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _validate_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """The epoch is the member's, or the one before it: then the response that told it may have been lost."""
    epoch = request.member_epoch
    missed_one = epoch == member.previous_member_epoch and member.owns_only_assigned(request.topic_partitions)
    if epoch > member.member_epoch or (epoch < member.member_epoch and not missed_one):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member epoch {epoch} is {'above' if epoch > member.member_epoch else 'below'} the coordinator's, "
            f"{member.member_epoch}; the member must give up its partitions and rejoin",
        )


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupMember:
    """What the request does not say stays as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms, assignor = request.rebalance_timeout_ms, request.server_assignor
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor_name=member.server_assignor_name if assignor is None else assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic_member_metadata=None,
    )


def _assignment(member: ConsumerGroupMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(member.assigned_partitions.items())
        ]
    )

"""From a classic group to a consumer group and back, while its members carry on (KIP-848's online migration).

Upgrade: a member of the consumer protocol joins a classic group of consumers. The members become members of the new
consumer group with the assignment and generation they have; they keep speaking the classic protocol
(`consumer_classic_members`) until they are restarted one by one. An empty classic group simply gives way.

Downgrade: the last member that speaks the consumer protocol goes, and all others speak the classic one. They become a
classic group again, with the group epoch as generation, and rebalance.

`group.consumer.migration.policy` (bidirectional, upgrade, downgrade, disabled) says which of the two may happen. Either
is one batch: the tombstones of the old group and the records of the new one.
"""

from __future__ import annotations

from millstream.broker.groups import consumer_records
from millstream.broker.groups.classic_group import ClassicGroup
from millstream.broker.groups.classic_member import ClassicMember
from millstream.broker.groups.classic_rebalance import ClassicRebalance
from millstream.broker.groups.classic_states import ClassicState
from millstream.broker.groups.consumer_embedded_protocol import (
    assignment_by_id,
    read_assignment,
    read_subscription,
    read_version,
    write_assignment,
)
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.consumer_records import Change
from millstream.broker.groups.consumer_sessions import ConsumerSessions
from millstream.broker.groups.consumer_subscriptions import metadata_hash
from millstream.broker.groups.group import CONSUMER_PROTOCOL_TYPE, Group
from millstream.broker.groups.runtime import GroupRuntime
from millstream.logs import get_logger
from millstream.wire.codec import MalformedMessage
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.group_records import ClassicMemberMetadata, ClassicProtocol
from millstream.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from millstream.wire.messages.sync_group import SyncGroupResponse

log = get_logger(__name__)


class ConsumerMigration:
    """Turns groups of one kind into groups of the other."""

    def __init__(self, runtime: GroupRuntime, sessions: ConsumerSessions) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._classic_rebalance = ClassicRebalance(runtime)
        sessions.downgrade = self.downgrade_without

    def _policy(self) -> str:
        return self._runtime.config.group_consumer_migration_policy.lower()

    @property
    def enabled(self) -> bool:
        return self._policy() != "disabled"

    # --- upgrade -----------------------------------------------------------------------------------------------------

    def consumer_group_for(self, group: Group) -> ConsumerGroup:
        """What a group that is not a consumer group would be as one; GROUP_ID_NOT_FOUND if it cannot be."""
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id} is not a consumer group")
        upgraded = ConsumerGroup(group.group_id)
        if group.is_empty():
            return upgraded
        if self._policy() not in ("bidirectional", "upgrade"):
            raise _no_upgrade(group, "group.consumer.migration.policy forbids it")
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise _no_upgrade(group, "its members do not use the consumer embedded protocol")
        if group.member_count > self._runtime.config.group_consumer_max_size:
            raise _no_upgrade(group, "it has more members than group.consumer.max.size")
        upgraded.group_epoch = upgraded.assignment_epoch = group.generation_id
        try:
            for member in group.members.values():
                self._upgrade_member(group, member, upgraded)
        except MalformedMessage as error:
            raise _no_upgrade(group, f"the embedded consumer protocol is malformed: {error}") from error
        upgraded.metadata_hash = metadata_hash(upgraded.subscribed_topics(), self._runtime.topics)
        return upgraded

    def _upgrade_member(self, group: ClassicGroup, member: ClassicMember, upgraded: ConsumerGroup) -> None:
        assigned = {}
        if member.assignment:
            assignment = read_assignment(member.assignment)
            if assignment.user_data:
                raise _no_upgrade(group, "a custom assignor is in use, whose user data would be lost")
            assigned = dict(assignment_by_id(assignment, self._runtime.topics))
        subscription = read_subscription(
            member.protocols[0].metadata if group.protocol_name is None else member.metadata(group.protocol_name)
        )
        epoch = group.generation_id
        upgraded.target_assignment[member.member_id] = assigned
        upgraded.apply_member(
            ConsumerGroupMember(
                member_id=member.member_id,
                member_epoch=epoch,
                previous_member_epoch=epoch,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=frozenset(subscription.topics),
                assigned_partitions={
                    topic_id: dict.fromkeys(sorted(partitions), epoch) for topic_id, partitions in assigned.items()
                },
                classic_member_metadata=ClassicMemberMetadata(
                    session_timeout_ms=member.session_timeout_ms,
                    supported_protocols=[
                        ClassicProtocol(name=protocol.name, metadata=bytes(protocol.metadata))
                        for protocol in member.protocols
                    ],
                ),
            )
        )

    def changes_for(self, group: ConsumerGroup) -> list[Change]:
        """The records of a group that was upgraded with members; an empty one has none."""
        if not group.members:
            return []
        members = list(group.members.values())
        return [
            *(consumer_records.member_metadata(group.group_id, member) for member in members),
            consumer_records.group_metadata(group.group_id, group.group_epoch, group.metadata_hash),
            *(
                consumer_records.target_assignment(group.group_id, member.member_id, group.target_of(member.member_id))
                for member in members
            ),
            consumer_records.target_assignment_metadata(
                group.group_id, group.assignment_epoch, group.assignment_timestamp_ms
            ),
            *(consumer_records.current_assignment(group.group_id, member) for member in members),
        ]

    def upgraded(self, classic: Group, group: ConsumerGroup) -> None:
        """The records are written: who waits in the old group is told to rejoin, and all members get their sessions."""
        assert isinstance(classic, ClassicGroup)
        error = ErrorCode.REBALANCE_IN_PROGRESS
        for member_id in list(classic.members):
            classic.reply_join(member_id, JoinGroupResponse(error_code=error, member_id=member_id))
            classic.reply_sync(member_id, SyncGroupResponse(error_code=error))
        for member in group.members.values():
            if member.classic_member_metadata is not None:
                self._sessions.heard_from(group, member, member.classic_member_metadata.session_timeout_ms)
        log.info("classic group became a consumer group", group=group.group_id, epoch=group.group_epoch)

    # --- downgrade ---------------------------------------------------------------------------------------------------

    def downgrade_without(self, group: ConsumerGroup, gone: set[str]) -> bool:
        """Turns the group into a classic one if, without these members, all use the classic protocol."""
        rest = [member for member in group.members.values() if member.member_id not in gone]
        if (
            not rest
            or not all(member.uses_classic_protocol for member in rest)
            or self._policy() not in ("bidirectional", "downgrade")
            or len(rest) > self._runtime.config.group_max_size
        ):
            return False
        rebalance = bool(gone) or group.assignment_epoch < group.group_epoch
        try:
            classic = self._classic_group(group, rest)
        except (MalformedMessage, ValueError) as error:
            log.warning("consumer group cannot become a classic one", group=group.group_id, error=str(error))
            return False
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        self._runtime.append(group.group_id, [*group.tombstones(), classic.record(assignments)])
        group.cancel_timers()
        self._runtime.groups[group.group_id] = classic
        for member_id in classic.members:
            self._classic_rebalance.reschedule_session(classic, member_id)
        log.info("consumer group became a classic group", group=group.group_id, generation=classic.generation_id)
        if rebalance:
            self._classic_rebalance.prepare(classic, "it was a consumer group")
        return True

    def _classic_group(self, group: ConsumerGroup, members: list[ConsumerGroupMember]) -> ClassicGroup:
        """A stable classic group in which each member has its part of the target assignment."""
        classic = ClassicGroup(group.group_id, self._runtime.timer.now_ms())
        classic.generation_id = group.group_epoch
        for member in members:
            metadata = member.classic_member_metadata
            assert metadata is not None
            classic.add(
                ClassicMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=metadata.session_timeout_ms,
                    protocol_type=CONSUMER_PROTOCOL_TYPE,
                    protocols=[
                        JoinGroupRequestProtocol(name=protocol.name, metadata=protocol.metadata)
                        for protocol in metadata.supported_protocols
                    ],
                )
            )
        classic.state = ClassicState.STABLE
        classic.protocol_name = classic.select_protocol()
        classic.subscribed_topics = classic.compute_subscribed_topics()
        for member_id, each in classic.members.items():
            version = read_version(each.metadata(classic.protocol_name))
            each.assignment = write_assignment(group.target_of(member_id), self._runtime.topics, version)
        return classic


def _no_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"classic group {group.group_id} cannot become a consumer group: {reason}"
    )

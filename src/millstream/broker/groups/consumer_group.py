"""A consumer group (KIP-848): members, epochs, target assignment, and who owns which partition.

All of it is made from records by the `apply...` methods, at start as while running. Three things are not stored,
because a restart may forget them: whether the topics have to be looked at again, when the expressions were last
resolved, and timers.

Epochs: the group epoch goes up when anything changes that asks for a new assignment; the assignment epoch says for
which group epoch the target assignment was made; each member follows with its own. Group epoch above assignment
epoch: the group is Assigning; members that are not there yet: Reconciling; otherwise Stable.

Invariant: a partition has at most one owner, the member it is assigned to or that has not yet revoked it.
"""

from __future__ import annotations

from collections import Counter

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups import consumer_records
from millstream.broker.groups.assignors import EMPTY_ASSIGNMENT, Assignment
from millstream.broker.groups.consumer_member import LEAVE_EPOCH, ConsumerGroupMember
from millstream.broker.groups.consumer_states import ConsumerGroupState, MemberState
from millstream.broker.groups.consumer_subscriptions import ResolvedRegularExpression, all_subscribed_topics
from millstream.broker.groups.consumer_timers import MemberTimers
from millstream.broker.groups.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, PartitionValidator
from millstream.wire.errors import ErrorCode, KafkaError

_FIRST_COMMIT_VERSION = 9
"""Of OffsetCommit: the first that carries a member epoch."""


class ConsumerGroup:
    """Implements `Group`."""

    group_type = CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.target_assignment: dict[str, Assignment] = {}
        self.resolved: dict[str, ResolvedRegularExpression] = {}
        self.has_partition_metadata_record = False
        self.needs_metadata_refresh = True
        self.last_resolution_ms = 0
        self.last_resolution_version = 0
        self.timers = MemberTimers()
        self._owners: dict[tuple[bytes, int], str] = {}
        self._subscribed_topics: frozenset[str] | None = None

    # --- the Group interface ---------------------------------------------------------------------------------------

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def state_name(self) -> str:
        return self.state.value

    def is_empty(self) -> bool:
        return not self.members

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_member_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionValidator | None:
        """The epoch must be the member's; an older one is good for partitions the member has held since then."""
        if generation_or_member_epoch < 0 and not self.members:
            return None  # an admin client, or a consumer that assigns its partitions itself
        if transactional and generation_or_member_epoch == -1 and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and not member.uses_classic_protocol and api_version < _FIRST_COMMIT_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"members of the consumer protocol commit with OffsetCommit {_FIRST_COMMIT_VERSION} or later",
            )
        epoch = generation_or_member_epoch
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _wrong_epoch(member, f"epoch {epoch} is newer than the member's, {member.member_epoch}")

        def validate(topic: str, topic_id: bytes, partition: int) -> None:
            assigned_in = member.assignment_epoch(topic_id, partition)
            if assigned_in is None:
                raise _wrong_epoch(member, f"{topic}-{partition} is not assigned to the member")
            if epoch < assigned_in:
                raise _wrong_epoch(member, f"{topic}-{partition} became the member's in {assigned_in}, after {epoch}")

        return validate

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _wrong_epoch(member, f"epoch {member_epoch} is not the member's, {member.member_epoch}")

    def validate_offset_delete(self) -> None:
        return

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def validate_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    def tombstones(self) -> list[KeyValue]:
        return consumer_records.encoded(
            consumer_records.without_group(self.group_id, list(self.members), list(self.resolved))
        )

    def cancel_timers(self) -> None:
        self.timers.cancel_all()

    # --- questions ---------------------------------------------------------------------------------------------------

    def member(self, member_id: str) -> ConsumerGroupMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} is not a member of group {self.group_id}"
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        return self.members.get(self.static_members.get(instance_id or "", ""))

    def target_of(self, member_id: str) -> Assignment:
        return self.target_assignment.get(member_id, EMPTY_ASSIGNMENT)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get((topic_id, partition))

    def subscribed_topics(self) -> frozenset[str]:
        if self._subscribed_topics is None:
            self._subscribed_topics = all_subscribed_topics(self.members.values(), self.resolved)
        return self._subscribed_topics

    def waits_for_release(self, member: ConsumerGroupMember) -> bool:
        """Whether a partition of the member's target still has another owner."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            self.owner(topic_id, partition) not in (None, member.member_id)
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    def classic_member_count(self) -> int:
        return sum(member.uses_classic_protocol for member in self.members.values())

    def classic_protocols(self) -> Counter[str]:
        """How many of the members that use the classic protocol support each embedded protocol."""
        return Counter(
            protocol.name
            for member in self.members.values()
            if member.classic_member_metadata is not None
            for protocol in member.classic_member_metadata.supported_protocols
        )

    # --- replay ------------------------------------------------------------------------------------------------------

    def apply_member(self, member: ConsumerGroupMember) -> None:
        old = self.members.get(member.member_id)
        self._release(old)
        self.members[member.member_id] = member
        for partition in member.responsible_for():
            self._owners[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if old is None or (old.subscribed_topic_names, old.subscribed_topic_regex) != (
            member.subscribed_topic_names,
            member.subscribed_topic_regex,
        ):
            self._subscribed_topics = None

    def apply_member_released(self, member_id: str) -> None:
        """The current assignment was deleted, as the first step of deleting the member."""
        member = self.members.get(member_id)
        if member is not None:
            self.apply_member(
                member._replace(
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned_partitions={},
                    partitions_pending_revocation={},
                )
            )

    def apply_member_removed(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._release(member)
        self.timers.cancel_member(member_id)
        self._subscribed_topics = None
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def apply_resolved(self, expression: str, resolved: ResolvedRegularExpression | None) -> None:
        if resolved is None:
            self.resolved.pop(expression, None)
        else:
            self.resolved[expression] = resolved
        self._subscribed_topics = None

    def _release(self, member: ConsumerGroupMember | None) -> None:
        if member is not None:
            for partition in member.responsible_for():
                if self._owners.get(partition) == member.member_id:
                    del self._owners[partition]


def _wrong_epoch(member: ConsumerGroupMember, message: str) -> KafkaError:
    """Members of the classic protocol know their epoch as a generation."""
    return KafkaError(
        ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH, message
    )

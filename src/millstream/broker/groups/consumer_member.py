"""A member of a consumer group, and how a heartbeat moves its current assignment towards the target assignment.

A member is an immutable value: `reconcile` returns the next one, which becomes real when its record has been replayed.

Partitions carry the epoch in which they were assigned to the member, because a commit with an older epoch is still
good for a partition that the member has held since then. A member that uses the classic protocol within a consumer
group (during a migration) is the same value with `classic_member_metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from millstream.broker.groups.assignors import Assignment
from millstream.broker.groups.consumer_states import Condition, MemberState, Step, next_step, state_after_advance
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_group_heartbeat import RequestTopicPartitions
from millstream.wire.messages.group_records import ClassicMemberMetadata

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

AssignmentWithEpochs = Mapping[bytes, Mapping[int, int]]
"""By topic id: each partition and the epoch in which it was assigned. A topic without partitions is not in it."""
NOTHING: AssignmentWithEpochs = {}


class ConsumerGroupMember(NamedTuple):
    """One member as the records describe it."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor_name: str | None = None
    assigned_partitions: AssignmentWithEpochs = NOTHING
    partitions_pending_revocation: AssignmentWithEpochs = NOTHING
    classic_member_metadata: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic_member_metadata is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which a partition became the member's, if it is responsible for it."""
        for assignment in (self.assigned_partitions, self.partitions_pending_revocation):
            epoch = assignment.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def responsible_for(self) -> list[tuple[bytes, int]]:
        """Every partition that nobody else may get: the assigned ones and those it has not yet revoked."""
        return [
            (topic_id, partition)
            for assignment in (self.assigned_partitions, self.partitions_pending_revocation)
            for topic_id, partitions in assignment.items()
            for partition in partitions
        ]

    def owns_only_assigned(self, owned: Sequence[RequestTopicPartitions] | None) -> bool:
        """Whether what a member says it owns is within its assignment."""
        return owned is not None and all(
            partition in self.assigned_partitions.get(topic.topic_id, {})
            for topic in owned
            for partition in topic.partitions
        )

    def departed_for_a_while(self) -> ConsumerGroupMember:
        """A static member that announced to come back: it keeps its partitions, as if it had them since epoch 0."""
        kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in self.assigned_partitions.items()}
        return self._replace(
            member_epoch=STATIC_LEAVE_EPOCH, assigned_partitions=kept, partitions_pending_revocation={}
        )


class Target(NamedTuple):
    """Where a member is to be led, and what stands in the way."""

    epoch: int
    assignment: Assignment
    subscribed_topic_ids: frozenset[bytes]
    subscription_changed: bool
    """In this heartbeat."""
    is_held_by_another: Callable[[bytes, int], bool]
    owned: Sequence[RequestTopicPartitions] | None
    """What the member says it owns; None when it does not say, which is taken as everything."""


def reconcile(member: ConsumerGroupMember, target: Target) -> ConsumerGroupMember:
    """The member after one step of the table in `consumer_states`; the same value if nothing can be done yet."""
    conditions = {
        condition
        for condition, holds in (
            (Condition.BEHIND_TARGET, member.member_epoch != target.epoch),
            (Condition.REVOKED, not _owns_any(target.owned, member.partitions_pending_revocation)),
            (Condition.OWNS_NOTHING, target.owned is not None and not target.owned),
            (Condition.SUBSCRIPTION_CHANGED, target.subscription_changed),
        )
        if holds
    }
    step = next_step(member.state, conditions)
    if step is Step.ADVANCE:
        return _advance(member, target)
    if step is Step.SHRINK:
        return _shrink(member, target)
    if step is Step.FENCE:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {member.member_id} is in an unknown state; it must give up its partitions and rejoin",
        )
    return member


def _owns_any(owned: Sequence[RequestTopicPartitions] | None, partitions: AssignmentWithEpochs) -> bool:
    if owned is None:
        return True
    return any(partition in partitions.get(topic.topic_id, {}) for topic in owned for partition in topic.partitions)


def _advance(member: ConsumerGroupMember, target: Target) -> ConsumerGroupMember:
    assigned: dict[bytes, dict[int, int]] = {}
    to_revoke: dict[bytes, dict[int, int]] = {}
    to_assign: dict[bytes, dict[int, int]] = {}
    waits_for_release = False
    for topic_id in dict.fromkeys((*target.assignment, *member.assigned_partitions)):
        current = member.assigned_partitions.get(topic_id, {})
        wanted = (
            target.assignment.get(topic_id, frozenset()) if topic_id in target.subscribed_topic_ids else frozenset()
        )
        kept = {partition: epoch for partition, epoch in current.items() if partition in wanted}
        revoked = {partition: epoch for partition, epoch in current.items() if partition not in wanted}
        missing = sorted(wanted - current.keys())
        free = [partition for partition in missing if not target.is_held_by_another(topic_id, partition)]
        waits_for_release = waits_for_release or len(free) < len(missing)
        for assignment, partitions in (
            (assigned, kept),
            (to_revoke, revoked),
            (to_assign, dict.fromkeys(free, target.epoch)),
        ):
            if partitions:
                assignment[topic_id] = partitions
    must_revoke = bool(to_revoke) and _owns_any(target.owned, to_revoke)
    state = state_after_advance(must_revoke=must_revoke, waits_for_release=waits_for_release)
    if must_revoke:
        # It stays at its epoch, so that the coordinator can tell from its next heartbeat where it is.
        epoch = target.epoch if member.state is MemberState.UNKNOWN else member.member_epoch
        return member._replace(
            state=state,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned_partitions=assigned,
            partitions_pending_revocation=to_revoke,
        )
    for topic_id, partitions in to_assign.items():
        assigned[topic_id] = assigned.get(topic_id, {}) | partitions
    return member._replace(
        state=state,
        member_epoch=target.epoch,
        previous_member_epoch=member.member_epoch,
        assigned_partitions=assigned,
        partitions_pending_revocation={},
    )


def _shrink(member: ConsumerGroupMember, target: Target) -> ConsumerGroupMember:
    """Without a new target: what the member is no longer subscribed to is to be revoked at once."""
    lost = {
        topic_id: dict(partitions)
        for topic_id, partitions in member.assigned_partitions.items()
        if topic_id not in target.subscribed_topic_ids
    }
    if not lost:
        return member
    assigned = {
        topic_id: partitions for topic_id, partitions in member.assigned_partitions.items() if topic_id not in lost
    }
    to_revoke: dict[bytes, Mapping[int, int]] = dict(member.partitions_pending_revocation)
    for topic_id, partitions in lost.items():
        to_revoke[topic_id] = {**to_revoke.get(topic_id, {}), **partitions}
    smaller = member._replace(previous_member_epoch=member.member_epoch, assigned_partitions=assigned)
    if _owns_any(target.owned, to_revoke):
        return smaller._replace(state=MemberState.UNREVOKED_PARTITIONS, partitions_pending_revocation=to_revoke)
    return smaller

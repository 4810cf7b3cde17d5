"""Who is still there: the clocks of the members of consumer groups, and how a member is removed.

If the log refuses to write the removal the clock is set again for a moment later: the member stays until it can be
written, because what is in memory is never ahead of the log.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.consumer_rebalance import ConsumerRebalance
from millstream.broker.groups.consumer_states import MemberState
from millstream.broker.groups.consumer_timers import TimerKind
from millstream.broker.groups.runtime import GroupRuntime
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError

_RETRY_MS = 500

log = get_logger(__name__)


class ConsumerSessions:
    """The clocks of all consumer groups of this coordinator."""

    def __init__(self, runtime: GroupRuntime, rebalance: ConsumerRebalance) -> None:
        self._runtime = runtime
        self._rebalance = rebalance
        self.downgrade: Callable[[ConsumerGroup, set[str]], bool] = lambda group, gone: False
        """Set by the migration: turns the group into a classic one, if that is what is left when these have gone."""

    def static_member(self, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerGroupMember:
        """Who has the instance id, if it is the member that asks."""
        member = group.static_member(instance_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"instance id {instance_id} is unknown")
        if member.member_id != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"member {member_id} is fenced: instance id {instance_id} now belongs to {member.member_id}",
            )
        return member

    def remove(self, group: ConsumerGroup, gone: set[str], reason: str) -> None:
        """Members leave or are thrown out; what they owned is free and the group gets a new assignment."""
        if not gone:
            return
        if not self.downgrade(group, gone):
            self._rebalance.commit(group.group_id, self._rebalance.changes_without(group, gone))
        log.info("members removed", group=group.group_id, members=sorted(gone), reason=reason)

    # --- clocks ------------------------------------------------------------------------------------------------------

    def heard_from(self, group: ConsumerGroup, member: ConsumerGroupMember, timeout_ms: int) -> None:
        self._schedule(group, member.member_id, TimerKind.SESSION, timeout_ms, "its session timed out")

    def watch_revocation(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """A member that was told to revoke has its rebalance time-out to do so, and to leave its epoch."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            group.timers.cancel(member.member_id, TimerKind.REBALANCE)
            return
        epoch = member.member_epoch
        self._schedule(
            group,
            member.member_id,
            TimerKind.REBALANCE,
            member.rebalance_timeout_ms,
            f"it did not get beyond epoch {epoch} within its rebalance time-out",
            only_in_epoch=epoch,
        )

    def watch_rejoin(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """A member of the classic protocol was told to rejoin. The clock runs from the first time it was told."""
        if not group.timers.has(member.member_id, TimerKind.JOIN):
            self._schedule(
                group, member.member_id, TimerKind.JOIN, member.rebalance_timeout_ms, "it did not rejoin in time"
            )

    def watch_sync(self, group: ConsumerGroup, member: ConsumerGroupMember, timeout_ms: int) -> None:
        self._schedule(group, member.member_id, TimerKind.SYNC, timeout_ms, "it did not sync in time")

    def loaded(self, group: ConsumerGroup) -> None:
        for member in group.members.values():
            classic = member.classic_member_metadata
            timeout_ms = self._rebalance.session_timeout_ms(group.group_id)
            self.heard_from(group, member, timeout_ms if classic is None else classic.session_timeout_ms)
            if classic is None:
                self.watch_revocation(group, member)

    def _schedule(
        self,
        group: ConsumerGroup,
        member_id: str,
        kind: TimerKind,
        delay_ms: int,
        reason: str,
        only_in_epoch: int | None = None,
    ) -> None:
        def expire() -> None:
            member = group.members.get(member_id)
            if member is None or (only_in_epoch is not None and member.member_epoch != only_in_epoch):
                return
            try:
                self.remove(group, {member_id}, reason)
            except KafkaError as error:
                log.warning("member cannot be removed yet", group=group.group_id, member=member_id, error=str(error))
                group.timers.set(member_id, kind, self._runtime.timer.call_later(_RETRY_MS, expire))

        group.timers.set(member_id, kind, self._runtime.timer.call_later(delay_ms, expire))

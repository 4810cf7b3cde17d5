"""How a classic group gets from one generation to the next: the two barriers and all the clocks that bound them.

    prepare         Stable/Completing/Empty -> PreparingRebalance. Waiting SyncGroups are told to rejoin. From Empty the
                    group waits group.initial.rebalance.delay.ms, again for newcomers, up to the rebalance time-out.
    complete_join   all have joined, or the rebalance time-out passed: dynamic members that did not come are removed,
                    the generation goes up, waiting JoinGroups are answered, the leader's with all subscriptions.
    complete_sync   the leader's assignment is written to the log, then handed to every waiting SyncGroup: Stable.
    time-outs       session (no heartbeat; a new member gets five minutes for its first join), rebalance (the join
                    barrier), pending sync (a member that joined but never synced is removed).

If the log refuses the assignment the members get the error and the group rebalances; if it refuses an empty
generation that is only logged, because after a restart the older generation's members would time out anyway.
"""

from __future__ import annotations

from collections.abc import Mapping

from millstream.broker.groups.classic_group import ClassicGroup
from millstream.broker.groups.classic_states import ClassicState
from millstream.broker.groups.runtime import GroupRuntime
from millstream.logs import get_logger
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.sync_group import SyncGroupResponse

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000

log = get_logger(__name__)


class ClassicRebalance:
    """The rebalances of all classic groups of this coordinator."""

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._timer = runtime.timer

    # --- join barrier ----------------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """After members came, changed or went: a rebalance, or one step in the one that is under way."""
        if group.can_rebalance():
            self.prepare(group, reason)
        else:
            self.complete_join_if_ready(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._drop_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        group.cancel_sync_timer()
        initial = group.is_empty()
        group.transition_to(ClassicState.PREPARING_REBALANCE, self._timer.now_ms())
        log.info("rebalance begins", group=group.group_id, generation=group.generation_id, reason=reason)
        if initial:
            delay_ms = self._runtime.config.group_initial_rebalance_delay_ms
            self._delay_initial_join(group, delay_ms, max(group.rebalance_timeout_ms() - delay_ms, 0))
        elif group.all_members_joined():
            self.complete_join(group)
        else:
            self._schedule_complete_join(group)

    def complete_join_if_ready(self, group: ClassicGroup) -> None:
        """The initial rebalance has its own clock and does not end the moment all are there."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.previous_state is not ClassicState.EMPTY
            and group.all_members_joined()
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        group.cancel_join_timer()
        for member in list(group.members.values()):
            if member.member_id not in group.awaiting_join and member.group_instance_id is None:
                group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left and none came: wait until one does or their sessions end.
            self._schedule_complete_join(group)
            return
        group.init_next_generation(self._timer.now_ms())
        if group.is_empty():
            self._write_empty(group)
            return
        log.info("new generation", group=group.group_id, generation=group.generation_id, members=len(group.members))
        for member in list(group.members.values()):
            group.reply_join(member.member_id, group.joined_response(member.member_id))
            self.reschedule_session(group, member.member_id)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        generation_id = group.generation_id
        group.sync_timer = self._timer.call_later(
            group.rebalance_timeout_ms(), lambda: self._expire_pending_sync(group, generation_id)
        )

    def _delay_initial_join(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        def expire() -> None:
            group.join_timer = None
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                next_delay_ms = min(self._runtime.config.group_initial_rebalance_delay_ms, remaining_ms)
                self._delay_initial_join(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
            else:
                self.complete_join(group)

        group.cancel_join_timer()
        group.join_timer = self._timer.call_later(delay_ms, expire)

    def _schedule_complete_join(self, group: ClassicGroup) -> None:
        group.cancel_join_timer()
        group.join_timer = self._timer.call_later(group.rebalance_timeout_ms(), lambda: self.complete_join(group))

    def _write_empty(self, group: ClassicGroup) -> None:
        log.info("group is empty", group=group.group_id, generation=group.generation_id)
        try:
            self._runtime.append(group.group_id, [group.record({})])
        except KafkaError as error:
            log.warning("empty generation could not be written", group=group.group_id, error=str(error))

    # --- sync barrier ----------------------------------------------------------------------------------------------

    def complete_sync(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """The leader's assignment; members it does not name get an empty one."""
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        try:
            self._runtime.append(group.group_id, [group.record(complete)])
        except KafkaError as error:
            self._drop_assignments(group, error.code)
            self.prepare_or_complete(group, f"the assignment could not be written: {error}")
            return
        for member in group.members.values():
            member.assignment = complete[member.member_id]
        for member in list(group.members.values()):
            response = SyncGroupResponse(
                protocol_type=group.protocol_type_or_none,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            )
            if group.reply_sync(member.member_id, response):
                self.reschedule_session(group, member.member_id)
        group.transition_to(ClassicState.STABLE, self._timer.now_ms())

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member sent its SyncGroup in time."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            group.cancel_sync_timer()

    def _drop_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in list(group.members.values()):
            member.assignment = b""
            if group.reply_sync(member.member_id, SyncGroupResponse(error_code=error)):
                self.reschedule_session(group, member.member_id)

    def _expire_pending_sync(self, group: ClassicGroup, generation_id: int) -> None:
        group.sync_timer = None
        if group.generation_id != generation_id or not group.pending_sync:
            return
        late = sorted(group.pending_sync)
        for member_id in late:
            group.remove(member_id)
        self.prepare(group, f"no SyncGroup came from {', '.join(late)}")

    # --- sessions --------------------------------------------------------------------------------------------------

    def reschedule_session(self, group: ClassicGroup, member_id: str, timeout_ms: int | None = None) -> None:
        """The member (or pending member) is alive: its session ends that much later from now."""
        group.cancel_session_timer(member_id)
        if timeout_ms is None:
            timeout_ms = group.members[member_id].session_timeout_ms
        group.session_timers[member_id] = self._timer.call_later(
            timeout_ms, lambda: self._expire_session(group, member_id)
        )

    def _expire_session(self, group: ClassicGroup, member_id: str) -> None:
        group.session_timers.pop(member_id, None)
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            group.remove(member_id)
            if group.state is ClassicState.PREPARING_REBALANCE and group.all_members_joined():
                self.complete_join(group)
        elif member is not None and not group.has_satisfied_heartbeat(member):
            group.remove(member_id)
            if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
                self.prepare_or_complete(group, f"the session of {member_id} timed out")
            elif group.state is ClassicState.PREPARING_REBALANCE and group.all_members_joined():
                self.complete_join(group)

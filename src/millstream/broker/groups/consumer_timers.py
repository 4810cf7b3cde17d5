"""The clocks of the members of one consumer group: at most one of each kind for each member.

SESSION      no heartbeat for the session time-out: the member is removed
REBALANCE    it did not revoke what it was told to within its rebalance time-out: the member is removed
JOIN, SYNC   a member of the classic protocol was told to rejoin, or has joined, and does not go on
"""

from __future__ import annotations

from enum import Enum

from millstream.broker.timer import TimerHandle


class TimerKind(Enum):
    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


class MemberTimers:
    """Who called call_later hands the handle over; what is replaced or not needed any more is cancelled here."""

    def __init__(self) -> None:
        self._handles: dict[str, dict[TimerKind, TimerHandle]] = {}

    def has(self, member_id: str, kind: TimerKind) -> bool:
        return kind in self._handles.get(member_id, {})

    def set(self, member_id: str, kind: TimerKind, handle: TimerHandle) -> None:
        self.cancel(member_id, kind)
        self._handles.setdefault(member_id, {})[kind] = handle

    def cancel(self, member_id: str, kind: TimerKind) -> None:
        handle = self._handles.get(member_id, {}).pop(kind, None)
        if handle is not None:
            handle.cancel()

    def cancel_member(self, member_id: str) -> None:
        for handle in self._handles.pop(member_id, {}).values():
            handle.cancel()

    def cancel_all(self) -> None:
        for member_id in list(self._handles):
            self.cancel_member(member_id)

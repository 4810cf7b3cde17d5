"""A timer that stands still until a test moves it: `advance(ms)` makes every call that falls due on the way."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class ManualHandle:
    """A call that a test's timer will make, unless it is cancelled."""

    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualTimer:
    """Implements `Timer`."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._sequence = 0
        self._calls: list[tuple[int, int, ManualHandle]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualHandle:
        handle = ManualHandle(self._now_ms + max(0, delay_ms), callback)
        self._sequence += 1
        heapq.heappush(self._calls, (handle.due_ms, self._sequence, handle))
        return handle

    def advance(self, delay_ms: int) -> None:
        """Time passes. A call made on the way sees the time at which it was due."""
        end = self._now_ms + delay_ms
        while self._calls and self._calls[0][0] <= end:
            due_ms, _, handle = heapq.heappop(self._calls)
            if not handle.cancelled:
                self._now_ms = max(self._now_ms, due_ms)
                handle.callback()
        self._now_ms = end

    def pending(self) -> int:
        """How many calls are still to be made."""
        return sum(not handle.cancelled for _, _, handle in self._calls)

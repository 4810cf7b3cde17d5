"""The memory that request frames may take together (`queued.max.request.bytes`).

Only frames too large for a connection's own receive buffer are counted. A connection that asks for more than is free
stops reading until another one has given back; a frame larger than the whole pool is let in alone, as Kafka does, so
that nothing starves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class RequestMemory:
    """A counter with a queue behind it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def try_acquire(self, size: int) -> bool:
        if self._limit > 0 and self.used > 0 and self.used + size > self._limit:
            return False
        self.used += size
        return True

    def wait(self, size: int, granted: Callable[[], None]) -> None:
        """Calls `granted` once `size` bytes have been acquired on the caller's behalf."""
        self._waiting.append((size, granted))

    def forget(self, granted: Callable[[], None]) -> None:
        """Withdraws a wait that is no longer wanted, because its connection is gone."""
        self._waiting = deque(item for item in self._waiting if item[1] != granted)

    def release(self, size: int) -> None:
        self.used -= size
        while self._waiting and self.try_acquire(self._waiting[0][0]):
            self._waiting.popleft()[1]()

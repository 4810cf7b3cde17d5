"""Time as the coordinators see it: now, and a call later. The server gives them the event loop's; tests give them a
manual one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from millstream.log.clock import Clock


class TimerHandle(Protocol):
    """A call that has been scheduled and may still be called off."""

    def cancel(self) -> None: ...


class Timer(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle: ...


class LoopTimer:
    """A timer on the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)

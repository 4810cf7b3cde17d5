"""How long trouble with a store is borne.

A store that is away for a moment (a restart, a fail-over, a lock) is no reason to stop a pipeline, and one that stays
away is no reason to wait in silence for ever: what failed is tried again with growing pauses until the time is up,
and then the last error stands. What counts as passing trouble, the sink says; a mistake or a refused row never does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class Patience:
    """At least one more attempt is made within `seconds` of the first failure."""

    seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def persist(self, action: Callable[[], T], passing: Callable[[Exception], bool]) -> T:
        """What `action` returns, tried again as long as what it raises is `passing` and the time is not up."""
        pause, deadline = FIRST_PAUSE, None
        while True:
            try:
                return action()
            except Exception as error:
                now = self.clock()
                deadline = deadline or now + self.seconds
                if not passing(error) or now >= deadline:
                    raise
            self.sleep(min(pause, max(0.0, deadline - now)))
            pause = min(pause * 2, LONGEST_PAUSE)

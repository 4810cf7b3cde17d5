"""What the broker does from time to time: a table of chores, and one loop that runs each when it is due.

Intervals are Kafka's settings. A chore is a quick call on the event loop's thread; what blocks, it hands to a worker.
One that fails is logged and tried again at its next turn: a full disk must not end the upkeep that could free it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from millstream.logs import get_logger

log = get_logger(__name__)


class Chore(NamedTuple):
    """Something to do every so often."""

    name: str
    interval_ms: Callable[[], int]
    """Asked before every turn: an interval may be changed while the server runs."""
    run: Callable[[], object]


async def maintain(chores: list[Chore], initial_delay_ms: int = 0) -> None:
    """Runs every chore at its interval, for ever, beginning after a delay in which a server has better things to do."""
    await asyncio.sleep(initial_delay_ms / 1000)
    await asyncio.gather(*(_repeat(chore) for chore in chores))


async def _repeat(chore: Chore) -> None:
    while True:
        await asyncio.sleep(chore.interval_ms() / 1000)
        try:
            chore.run()
        except Exception:
            log.exception("a chore failed; it is tried again later", chore=chore.name)

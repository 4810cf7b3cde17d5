"""Work at a rate, by the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator


def paced(seconds: float, rate: float) -> Iterator[int]:
    """Counts from 0, `rate` numbers a second for so many seconds. Who was held up gets the missing ones at once."""
    began = time.monotonic()
    for number in range(round(seconds * rate)):
        early = began + number / rate - time.monotonic()
        if early > 0:
            time.sleep(early)
        yield number

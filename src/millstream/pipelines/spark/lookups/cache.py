"""Answers of a store, remembered for a while: the least recently used go first when there are too many.

An answer that is older than `refresh` is not given any more (`fresh`), but is kept for as long as there is room, in
case the store is away (`stale`). That a key is not in the store is an answer, too.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer")


class Remembered(NamedTuple, Generic[Answer]):
    """An answer, None if the store does not have the key, and when it was given."""

    answer: Answer | None
    since: float


class Cache(Generic[Answer]):
    """At most `size` answers by key."""

    def __init__(self, size: int, refresh: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._refresh = refresh
        self._clock = clock
        self._answers: OrderedDict[str, Remembered[Answer]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def fresh(self, key: str) -> Remembered[Answer] | None:
        """What is remembered, if it is not too old; using it keeps it."""
        found = self.stale(key)
        return found if found is not None and self._clock() - found.since < self._refresh else None

    def stale(self, key: str) -> Remembered[Answer] | None:
        """What is remembered, however old; using it keeps it."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, key: str, answer: Answer | None) -> None:
        self._answers[key] = Remembered(answer, self._clock())
        self._answers.move_to_end(key)
        if len(self._answers) > self._size:
            self._answers.popitem(last=False)

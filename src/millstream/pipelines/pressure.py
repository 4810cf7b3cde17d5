"""Back-pressure: how many records one micro-batch may take, following the speed that was measured.

Spark takes the limit of a query when it starts, so a new limit costs a restart of the query between two batches. It
is therefore changed only while the pipeline is behind, only when two batches in a row say the same, and at least by a
factor of two.
"""

from __future__ import annotations

from millstream.pipelines.description.pipeline import BackPressure

FIRST_LIMIT = 1_000_000
SMALLEST_LIMIT = 1_000
AGREEING_BATCHES = 2
FULL = 0.9
"""A batch with this share of the limit was cut by it."""


class Pressure:
    """The limit of one query; None is no limit."""

    def __init__(self, settings: BackPressure) -> None:
        self._settings = settings
        largest = settings.max_records
        self.limit = largest if not settings.adaptive else min(FIRST_LIMIT, largest or FIRST_LIMIT)
        self._wanted: list[int] = []

    def batch_done(self, rows: int, seconds: float) -> int | None:
        """The new limit, if the query should be started again with another one."""
        if not self._settings.adaptive or self.limit is None or not rows or not seconds:
            return None
        ideal = int(rows / seconds * self._settings.target)
        wanted = max(SMALLEST_LIMIT, min(ideal, self._settings.max_records or ideal))
        cut = rows >= self.limit * FULL
        grows, shrinks = wanted >= 2 * self.limit and cut, wanted <= self.limit / 2 and seconds > self._settings.target
        if not (grows or shrinks):
            self._wanted.clear()
            return None
        if self._wanted and (self._wanted[-1] > self.limit) != grows:
            self._wanted.clear()
        self._wanted.append(wanted)
        if len(self._wanted) < AGREEING_BATCHES:
            return None
        self.limit = sum(self._wanted) // len(self._wanted)
        self._wanted.clear()
        return self.limit

"""A histogram of times in constant memory: each bucket is 2 % wider than the one before, so answers are 2 % exact."""

from __future__ import annotations

import math
from collections.abc import Mapping

_STEP = math.log(1.02)
_LEAST = 1e-6


class Histogram:
    """Counts of times in seconds; the greatest one is kept exactly."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total = 0
        self.greatest = 0.0

    def add(self, seconds: float) -> None:
        bucket = int(math.log(max(seconds, _LEAST) / _LEAST) / _STEP)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.total += 1
        if seconds > self.greatest:
            self.greatest = seconds

    def merge(self, counts: Mapping[str, int], greatest: float) -> None:
        """Adds what another process counted; JSON has made its buckets texts."""
        for bucket, count in counts.items():
            self.counts[int(bucket)] = self.counts.get(int(bucket), 0) + count
            self.total += count
        self.greatest = max(self.greatest, greatest)

    def quantile(self, share: float) -> float:
        """The time that this share of all did not exceed; 0 if there are none."""
        wanted = math.ceil(self.total * share)
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(_LEAST * math.exp((bucket + 1) * _STEP), self.greatest)
        return 0.0

    def milliseconds(self) -> dict[str, float]:
        """What a report shows of it."""
        found = {name: self.quantile(share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
        return {name: round(seconds * 1000, 3) for name, seconds in {**found, "max": self.greatest}.items()}

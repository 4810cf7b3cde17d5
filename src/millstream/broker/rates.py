"""Rates as Apache Kafka measures them for quotas: samples over a sliding window, and a token bucket.

A `Rate` keeps `num` samples of `window_ms` each, and one more that may reach into the window from before it. The window
over which it divides is never shorter than `num - 1` whole samples, so that a client that has just begun may use up the
quota of those at once. A `TokenBucket` holds as many tokens as the quota gives in the whole window; it may be overdrawn
by one request and then refuses until it is filled up to zero again.
"""

from __future__ import annotations


class _Sample:
    __slots__ = ("last_event_ms", "start_ms", "value")

    def __init__(self, now: int) -> None:
        self.value = 0.0
        self.start_ms = now
        self.last_event_ms = now


class Rate:
    """A rate in units a second."""

    __slots__ = ("_current", "_num", "_samples", "_window_ms", "last_used_ms")

    def __init__(self, num: int, window_ms: int, now: int) -> None:
        self._num = num
        self._window_ms = window_ms
        self._samples = [_Sample(now)]
        self._current = 0
        self.last_used_ms = now

    def record(self, value: float, now: int) -> None:
        sample = self._samples[self._current]
        if now - sample.start_ms >= self._window_ms:
            self._current = (self._current + 1) % (self._num + 1)
            if self._current == len(self._samples):
                self._samples.append(_Sample(now))
            sample = self._samples[self._current]
            sample.value, sample.start_ms = 0.0, now
        sample.value += value
        sample.last_event_ms = self.last_used_ms = now

    def window_ms(self, now: int) -> int:
        """The time over which the rate is measured now."""
        self._purge(now)
        elapsed = now - min(sample.start_ms for sample in self._samples)
        missing = self._num - 1 - elapsed // self._window_ms
        return max(elapsed + max(missing, 0) * self._window_ms, 1)

    def measure(self, now: int) -> float:
        window_ms = self.window_ms(now)
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def throttle_ms(self, limit: float, now: int) -> int:
        """How long to wait until the rate is down to the limit; 0 if it is not above it."""
        rate = self.measure(now)
        return round((rate - limit) / limit * self.window_ms(now)) if rate > limit else 0

    def _purge(self, now: int) -> None:
        for sample in self._samples:
            if now - sample.last_event_ms >= self._num * self._window_ms:
                sample.value, sample.start_ms, sample.last_event_ms = 0.0, now, now


class TokenBucket:
    """Tokens that come at the rate of the quota. Starts full."""

    __slots__ = ("_filled_ms", "_tokens", "_window_s", "last_used_ms")

    def __init__(self, num: int, window_ms: int, now: int) -> None:
        self._window_s = num * window_ms / 1000
        self._tokens = 0.0
        self._filled_ms = 0
        """Long ago, so that the first look fills it."""
        self.last_used_ms = now

    def throttle_ms(self, limit: float, now: int) -> int:
        """How long to wait until there are tokens again; 0 if it is not overdrawn."""
        self._fill(limit, now)
        return round(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def take(self, tokens: float, limit: float, now: int) -> None:
        self._fill(limit, now)
        self._tokens -= tokens

    def _fill(self, limit: float, now: int) -> None:
        self._tokens = min(self._window_s * limit, self._tokens + limit * (now - self._filled_ms) / 1000)
        self._filled_ms = self.last_used_ms = now

"""Asking a store: through a cache, and by a rule for when it is away.

The rules: `wait` asks again with growing pauses, and gives up after `WAIT_SECONDS`; `stale` takes what is remembered,
however old; `null` and `dead-letter` say that there is no answer, and leave the rest to the caller; `fail` gives up
at once. Giving up is StoreAway. While a store is away and nobody waits for it, it is asked again only once in
`PAUSE_SECONDS`, so that rows do not each wait for a connection that cannot be made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from millstream.pipelines.spark.lookups.cache import Cache
from millstream.pipelines.spark.lookups.store import Store, StoreAway, Unusable
from millstream.pipelines.spark.lookups.texts import text_of

Away = Literal["wait", "stale", "null", "dead-letter", "fail"]
Values = tuple[str | None, ...] | Unusable

WAIT_SECONDS = 300.0
FIRST_PAUSE_SECONDS = 0.1
PAUSE_SECONDS = 2.0
KEYS = 500
"""How many keys go into one question."""


class Answers(NamedTuple):
    """Key -> values, None if the store does not have it; a key that is not here got no answer, for the reason
    `away`."""

    known: Mapping[str, Values | None]
    away: str | None = None


class Asker:
    """A store with its cache; one for each store in each worker."""

    def __init__(
        self,
        store: Store,
        columns: Mapping[str, str],
        cache: Cache[Values],
        away: Away,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`columns`: name -> type."""
        self._store = store
        self._columns = columns
        self._cache = cache
        self._away = away
        self._clock = clock
        self._sleep = sleep
        self._asked_again_at: float | None = None
        self._reason = ""

    def ask(self, keys: Iterable[str]) -> Answers:
        """What the store, or the cache, says about these keys."""
        known: dict[str, Values | None] = {}
        wanted: list[str] = []
        for key in dict.fromkeys(keys):
            remembered = self._cache.fresh(key)
            if remembered is None:
                wanted.append(key)
            else:
                known[key] = remembered.answer
        for start in range(0, len(wanted), KEYS):
            asked = wanted[start : start + KEYS]
            try:
                known |= self._asked(asked)
            except StoreAway as error:
                if self._away in ("wait", "fail"):
                    raise
                return Answers(known | self._remembered(wanted[start:]), str(error))
        return Answers(known)

    def _asked(self, keys: Sequence[str]) -> dict[str, Values | None]:
        found = self._patiently(keys) if self._away == "wait" else self._at_intervals(keys)
        answers = {key: self._values(found[key]) if key in found else None for key in keys}
        for key, answer in answers.items():
            self._cache.put(key, answer)
        return answers

    def _patiently(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any] | Unusable]:
        pause, deadline = FIRST_PAUSE_SECONDS, self._clock() + WAIT_SECONDS
        while True:
            try:
                return self._store.get(keys)
            except StoreAway as error:
                if self._clock() + pause > deadline:
                    raise StoreAway(f"{error}; waited for {WAIT_SECONDS:g} s") from error
            self._sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS)

    def _at_intervals(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any] | Unusable]:
        if self._asked_again_at is not None and self._clock() < self._asked_again_at:
            raise StoreAway(self._reason)
        try:
            found = self._store.get(keys)
        except StoreAway as error:
            self._asked_again_at, self._reason = self._clock() + PAUSE_SECONDS, str(error)
            raise
        self._asked_again_at = None
        return found

    def _remembered(self, keys: Sequence[str]) -> dict[str, Values | None]:
        if self._away != "stale":
            return {}
        remembered = ((key, self._cache.stale(key)) for key in keys)
        return {key: found.answer for key, found in remembered if found is not None}

    def _values(self, found: Mapping[str, Any] | Unusable) -> Values:
        if isinstance(found, Unusable):
            return found
        return tuple(text_of(found.get(name), type_) for name, type_ in self._columns.items())

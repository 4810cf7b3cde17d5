"""Copies found among many texts without comparing each with each.

A text is the set of its shingles, every three words in a row. Two texts are as alike as the share of shingles that
they have in common (Jaccard). MinHash makes a short signature of a set: for each of many hash functions the least hash
of its members. Two signatures agree in a place as often as the sets are alike. The signature is cut into bands; texts
that share a whole band are candidates, found by look-up, and only those are compared shingle by shingle.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from typing import Any, NamedTuple

from articles.cleaning import words

SHINGLE = 3
BANDS = 32
ROWS = 4
"""Texts that are 60 % alike share at least one of 32 bands of 4 rows with 99 % probability, unrelated ones never."""
ALIKE = 0.5
_PRIME = (1 << 61) - 1
_RANDOM = random.Random(42)  # the functions must be the same in every process
_FUNCTIONS = [(_RANDOM.randrange(1, _PRIME), _RANDOM.randrange(_PRIME)) for _ in range(BANDS * ROWS)]


class Likeness(NamedTuple):
    """Another text that is like this one."""

    url: str
    share: float


def shingles(text: str) -> frozenset[str]:
    found = words(text)
    return frozenset(" ".join(found[at : at + SHINGLE]) for at in range(max(len(found) - SHINGLE + 1, 1)))


def signature(members: frozenset[str]) -> list[int]:
    hashes = [int.from_bytes(hashlib.blake2b(member.encode(), digest_size=7).digest()) for member in members]
    return [min((factor * value + summand) % _PRIME for value in hashes) for factor, summand in _FUNCTIONS]


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


class Index:
    """Texts that were seen, to be asked for copies."""

    def __init__(self) -> None:
        self._shingles: dict[str, frozenset[str]] = {}
        self._bands: dict[tuple[int, ...], set[str]] = defaultdict(set)

    def add(self, url: str, text: str) -> None:
        """A text of the same URL takes the place of the old one."""
        self.remove(url)
        self._shingles[url] = shingles(text)
        for band in _bands(self._shingles[url]):
            self._bands[band].add(url)

    def remove(self, url: str) -> None:
        known = self._shingles.pop(url, None)
        for band in _bands(known) if known else ():
            self._bands[band].discard(url)

    def most_alike(self, url: str, text: str) -> Likeness | None:
        """The text of another URL that this one is a copy of."""
        members = shingles(text)
        candidates = {other for band in _bands(members) for other in self._bands.get(band, ())} - {url}
        found = [Likeness(other, jaccard(members, self._shingles[other])) for other in sorted(candidates)]
        best = max(found, key=lambda likeness: likeness.share, default=None)
        return best if best is not None and best.share >= ALIKE else None


class Copies:
    """Articles that were let through, to be asked of which of them another one is a copy."""

    def __init__(self) -> None:
        self._index = Index()
        self._fingerprints: dict[str, str] = {}

    def remember(self, url: str, fingerprint: str, text: str) -> None:
        self._index.add(url, text)
        self._fingerprints[fingerprint] = url

    def of(self, url: str, fingerprint: str, text: str) -> dict[str, Any] | None:
        """The other article (`of`), how much they are `alike`, and `how`. A new version of a page is no copy of the
        old one."""
        exact = self._fingerprints.get(fingerprint)
        if exact is not None and exact != url:
            return {"of": exact, "alike": 1.0, "how": "exact"}
        near = self._index.most_alike(url, text)
        return None if near is None else {"of": near.url, "alike": round(near.share, 3), "how": "near"}


def _bands(members: frozenset[str]) -> list[tuple[int, ...]]:
    signed = signature(members)
    return [(band, *signed[band * ROWS : (band + 1) * ROWS]) for band in range(BANDS)]

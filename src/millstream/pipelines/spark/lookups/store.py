"""The interface of stores that are asked by key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

ANSWER_SECONDS = 10.0
"""A store that takes longer than this for an answer is away."""


class StoreAway(Exception):  # noqa: N818 - the store is away, which a rule decides about; it is no error yet
    """The store does not answer; the message says why."""


class Unusable(NamedTuple):
    """What a store has for a key, and nothing can be made of it: the error of the rows with that key."""

    reason: str


class Store(Protocol):
    """A store. Used by one thread."""

    def get(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any] | Unusable]:
        """Key -> columns, for the keys that the store has. StoreAway if it does not answer."""

    def close(self) -> None:
        """Gives back its connection; the next question makes a new one."""


class StoreSettings(Hashable, Protocol):
    """All that a worker needs to make a store: small, sent with the task, equal for the same store."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns wanted."""

    def open(self) -> Store:
        """The store; it connects when it is first asked."""

    def __str__(self) -> str:
        """For people: where it is, without a password."""

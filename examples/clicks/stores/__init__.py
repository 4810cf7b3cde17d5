"""Where clicks are kept: one interface, and a module for each kind of store, imported when it is needed.

A store is named by a URL: `sqlite:PATH`, `parquet:FOLDER`, `mysql://USER:PASSWORD@HOST:PORT/DATABASE`,
`cassandra://HOST:PORT/KEYSPACE`. What it promises its callers is that saving the same clicks twice is the same as
saving them once, and that a save that returns has been done whole: then a consumer that saves first and commits after
loses nothing and doubles nothing, whenever it dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from clicks.click import Click

MODULES = {"sqlite": "sqlite", "parquet": "parquet", "mysql": "mariadb", "cassandra": "cassandra"}


class StoreAway(Exception):  # noqa: N818 - not an error: a state that will end
    """The store does not answer now; what was to be saved is to be saved again."""


class Batch(NamedTuple):
    """The clicks among the records of one partition from offset `first` to `last`, and the offset of each."""

    partition: int
    first: int
    last: int
    offsets: Sequence[int]
    clicks: Sequence[Click]


class Store(Protocol):
    """A store of clicks, open. Several processes may have it open at the same time."""

    def save(self, batches: Sequence[Batch]) -> None:
        """Saves them all, or raises StoreAway."""

    def count(self) -> int:
        """How many clicks are in it."""

    def rows(self) -> Iterator[Click]:
        """All clicks in it, in any order, as often as they are in it."""

    def close(self) -> None: ...


def title_of(url: str) -> str:
    return {"sqlite": "SQLite", "parquet": "Parquet", "mysql": "MariaDB", "cassandra": "Cassandra"}[_scheme(url)]


def open_store(url: str) -> Store:
    """Opens the store and makes what is missing in it; StoreAway if it does not answer."""
    module = import_module(f"{__name__}.{MODULES[_scheme(url)]}")
    store: Store = module.open_store(url.partition(":")[2])
    return store


def _scheme(url: str) -> str:
    return url.partition(":")[0]

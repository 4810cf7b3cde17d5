"""The real stores for the tests; where one is not installed a test is skipped, and fails in CI.

`scripts/system_packages.sh` installs the programs and `scripts/fetch_jars.py` fetches the jars (`make setup`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from millstream.engines import processes
from millstream.stores import Cassandra, Hdfs, Store, StoreError
from millstream.stores.cassandra import CASSANDRA
from millstream.stores.hdfs import HDFS
from support.java import cache_with, missing

AnyStore = TypeVar("AnyStore", bound=Store)


@contextmanager
def running(store: AnyStore) -> Iterator[AnyStore]:
    """The store, started; closed at the end."""
    try:
        store.start()
    except StoreError as error:
        store.close()
        if "is not installed" in str(error):
            missing(f"{error}, or run `make setup`")
        raise
    try:
        yield store
    finally:
        store.close()


def new_cassandra() -> Cassandra:
    return Cassandra(cache=cache_with(CASSANDRA))


def new_hdfs() -> Hdfs:
    return Hdfs(cache=cache_with(HDFS))


def are_gone(pids: list[int]) -> bool:
    """Whether none of these processes lives; a zombie does not."""
    return all(processes.command_of(pid) is None for pid in pids)


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether it becomes true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True

"""Clicks in a table of Cassandra, where writing the row of a primary key again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from cassandra import DriverException, ProtocolVersion, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent
from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, tuple_factory

from clicks.click import Click
from clicks.stores import Batch, StoreAway

PATIENCE_SECONDS = 5.0
ROWS = 100
"""Of one request."""
REQUESTS = 8
"""On their way at the same time."""
KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
TABLE = """
CREATE TABLE IF NOT EXISTS {} (
    uuid uuid PRIMARY KEY, campaign_id tinyint, pub_id tinyint, timestamp bigint, ip text, city text, country text,
    browser text, platform text, platform_version text
)
"""
COLUMNS = ", ".join(Click._fields)


class CassandraStore:
    """A session; the driver finds a node again by itself."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        keyspace = parts.path.lstrip("/")
        self._table = f"{keyspace}.clicks"
        profile = ExecutionProfile(
            load_balancing_policy=RoundRobinPolicy(), request_timeout=PATIENCE_SECONDS, row_factory=tuple_factory
        )
        self._cluster = Cluster(
            [parts.hostname],
            port=parts.port or 9042,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            protocol_version=ProtocolVersion.V5,
            connect_timeout=PATIENCE_SECONDS,
            reconnection_policy=ConstantReconnectionPolicy(0.5, max_attempts=None),
        )
        with _away():
            try:
                self._session: Any = self._cluster.connect()
                self._session.execute(KEYSPACE.format(keyspace))
                self._session.execute(TABLE.format(self._table))
                marks = ", ".join("?" * len(Click._fields))
                self._insert = self._session.prepare(f"INSERT INTO {self._table} ({COLUMNS}) VALUES ({marks})")
            except BaseException:
                self._cluster.shutdown()
                raise

    def save(self, batches: Sequence[Batch]) -> None:
        clicks = chain.from_iterable(batch.clicks for batch in batches)
        rows = [(UUID(click.uuid), *click[1:]) for click in clicks]
        requests = []
        for start in range(0, len(rows), ROWS):
            request = BatchStatement(BatchType.UNLOGGED)  # no transaction: each row stands for itself
            for row in rows[start : start + ROWS]:
                request.add(self._insert, row)
            requests.append((request, None))
        with _away():
            execute_concurrent(self._session, requests, concurrency=REQUESTS)

    def count(self) -> int:
        return sum(1 for _ in self._session.execute(f"SELECT uuid FROM {self._table}"))

    def rows(self) -> Iterator[Click]:
        for uuid, *rest in self._session.execute(f"SELECT {COLUMNS} FROM {self._table}"):
            yield Click(str(uuid), *rest)

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def _away() -> Iterator[None]:
    try:
        yield
    except NoHostAvailable as error:
        reasons = {str(reason) for reason in error.errors.values()} or {"none is known to be up"}
        raise StoreAway(f"no node answers: {'; '.join(reasons)}") from error
    except (DriverException, RequestExecutionException, OSError) as error:
        raise StoreAway(" ".join(str(error).split())) from error


def open_store(address: str) -> CassandraStore:
    return CassandraStore(address)

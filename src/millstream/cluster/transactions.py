"""Transactions as the cluster sees them: the coordinators' lists, what each transaction holds open, and how to end one.

A transaction lives in two places: its coordinator knows state and partitions, and each partition's leader knows the
producers that have records between a transaction's begin and its marker. One that hangs is open in a partition while
its coordinator knows nothing of it (any more): it keeps the last stable offset, and so every read_committed consumer,
from going on, and only an abort in that partition ends it (KIP-664).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.cluster.answers import nearest, refuse_client
from millstream.cluster.connection import REQUEST_SECONDS, Connection
from millstream.cluster.errors import BadInput, ClusterError, NotFound
from millstream.cluster.layout import patiently, read_layout
from millstream.cluster.plans import names

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


class Transaction(NamedTuple):
    """A transactional id by its coordinator. Without an open transaction there is no start and no age."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    timeout_ms: int
    started_ms: int | None
    age_ms: int | None
    partitions: list[str]


class OpenPartition(NamedTuple):
    """An open transaction in one partition, by the partition's leader."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int
    idle_ms: int
    transactional_id: str | None


def list_transactions(
    connection: Connection, states: Collection[str] = (), older_than_ms: int | None = None
) -> list[Transaction]:
    def look(admin: KafkaAdminClient) -> list[Transaction]:
        found = admin.list_transactions(state_filters=list(states) or None)
        return _transactions(admin, [listing.transactional_id for listings in found.values() for listing in listings])

    return sorted(
        row
        for row in patiently(connection, look)
        if (not states or row.state in states)
        and (older_than_ms is None or (row.age_ms is not None and row.age_ms >= older_than_ms))
    )


def parse_states(texts: Iterable[str]) -> list[str]:
    """States however they are capitalized; BadInput if there is no such state."""
    known = {state.lower(): state for state in STATES}
    for text in texts:
        if text.lower() not in known:
            raise BadInput(f"--state: {text!r} is not a state of a transaction; they are: {', '.join(STATES)}")
    return [known[text.lower()] for text in texts]


def describe(connection: Connection, transactional_id: str) -> tuple[Transaction, list[OpenPartition]]:
    """A transaction, and what it has open in each of its partitions."""

    def look(admin: KafkaAdminClient) -> tuple[Transaction, list[OpenPartition]]:
        transaction = _transaction(admin, transactional_id)
        if transaction is None:
            known = [row.transactional_id for rows in admin.list_transactions().values() for row in rows]
            hint = nearest(transactional_id, known) or " (`millstream txn list` shows them)"
            raise NotFound(f"there is no transactional id {transactional_id!r}{hint}")
        keys = [(name, int(number)) for name, _, number in (text.rpartition("-") for text in transaction.partitions)]
        producers = [row for row in _open_in(admin, keys) if row.producer_id == transaction.producer_id]
        return transaction, [row._replace(transactional_id=transactional_id) for row in producers]

    return patiently(connection, look)


def _transactions(admin: KafkaAdminClient, ids: Sequence[str]) -> list[Transaction]:
    """Those of the ids that there are, asked for all at once unless one of them has just gone."""
    from kafka.errors import TransactionalIdNotFoundError

    try:
        found = admin.describe_transactions(ids)
    except TransactionalIdNotFoundError:
        return [row for id_ in ids for row in _transactions(admin, [id_])] if len(ids) > 1 else []
    return [_row(transactional_id, description) for transactional_id, description in found.items()]


def _transaction(admin: KafkaAdminClient, transactional_id: str) -> Transaction | None:
    rows = _transactions(admin, [transactional_id])
    return rows[0] if rows else None


def _row(transactional_id: str, found: Any) -> Transaction:
    started = found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None
    is_open = found.state.value in OPEN_STATES
    return Transaction(
        transactional_id,
        found.state.value,
        found.producer_id,
        found.producer_epoch,
        found.coordinator_id,
        found.transaction_timeout_ms,
        started if is_open else None,
        max(0, _now_ms() - started) if started is not None and is_open else None,
        [f"{topic}-{partition}" for topic, partition in sorted(found.topic_partitions)],
    )


def find_hanging(connection: Connection, topic: str | None = None, older_than_ms: int = 0) -> list[OpenPartition]:
    """Transactions that are open in a partition and unknown to their coordinator, or not for this partition.

    `older_than_ms`: since the producer's last record there. Below the cluster's `transaction.max.timeout.ms` a
    transaction that has only just begun, or is just being ended, can look as if it were hanging.
    """

    def look(admin: KafkaAdminClient) -> list[OpenPartition]:
        layout = read_layout(admin)
        if topic is not None:
            layout.require_topic(topic)
        keys = [
            (partition.topic, partition.number)
            for partition in layout.partitions
            if topic in (None, partition.topic) and partition.leader is not None
        ]
        suspects = [row for row in _open_in(admin, keys) if row.idle_ms >= older_than_ms]
        owners = _owners(admin, {row.producer_id for row in suspects})
        hanging = []
        for row in suspects:
            owner = owners.get(row.producer_id)
            known = _transaction(admin, owner) if owner is not None else None
            if (
                known is None
                or known.state not in OPEN_STATES
                or f"{row.topic}-{row.partition}" not in known.partitions
            ):
                hanging.append(row._replace(transactional_id=owner))
        return hanging

    return patiently(connection, look)


def _owners(admin: KafkaAdminClient, producer_ids: Collection[int]) -> dict[int, str]:
    """The transactional ids of producers, as far as a coordinator knows them."""
    if not producer_ids:
        return {}
    found = admin.list_transactions(producer_id_filters=sorted(producer_ids))
    return {listing.producer_id: listing.transactional_id for listings in found.values() for listing in listings}


def open_in(connection: Connection, topic: str, partition: int, producer_id: int | None) -> list[OpenPartition]:
    """The open transactions of one partition, or the one of a producer."""

    def look(admin: KafkaAdminClient) -> list[OpenPartition]:
        layout = read_layout(admin)
        layout.require_topic(topic)
        if (topic, partition) not in layout.placement([topic]):
            raise NotFound(f"--partition: {topic} has no partition {partition}")
        return _open_in(admin, [(topic, partition)])

    rows = patiently(connection, look)
    if producer_id is None:
        return rows
    found = [row for row in rows if row.producer_id == producer_id]
    if not found:
        others = f"; open are those of producer {names([row.producer_id for row in rows])}" if rows else ""
        raise NotFound(f"--producer-id: {producer_id} has no open transaction in {topic}-{partition}{others}")
    return found


def _open_in(admin: KafkaAdminClient, keys: Sequence[tuple[str, int]]) -> list[OpenPartition]:
    from kafka.structs import TopicPartition

    now = _now_ms()
    states: dict[Any, Any] = admin.describe_producers([TopicPartition(*key) for key in keys])
    return sorted(
        OpenPartition(
            key.topic,
            key.partition,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.current_transaction_start_offset,
            producer.last_timestamp,
            max(0, now - producer.last_timestamp),
            None,
        )
        for key, state in states.items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    )


def abort_by_id(connection: Connection, transaction: Transaction) -> None:
    """Ends what the transactional id has open, and shuts out (fences) the producer that had it."""
    from confluent_kafka import KafkaException

    producer = connection.producer(
        {"transactional.id": transaction.transactional_id, "transaction.timeout.ms": max(1, transaction.timeout_ms)}
    )
    try:
        producer.init_transactions(REQUEST_SECONDS)
    except KafkaException as error:
        refuse_client(f"{transaction.transactional_id} was not aborted", error)


def abort_in_partition(connection: Connection, row: OpenPartition) -> None:
    """Writes an abort marker into the partition, past the coordinator."""
    from kafka.admin import AbortTransactionSpec
    from kafka.structs import TopicPartition

    with connection.admin() as admin:
        # A producer that never ended a transaction has no coordinator epoch yet; 0 is not above any.
        epoch = max(0, row.coordinator_epoch)
        where = TopicPartition(row.topic, row.partition)
        admin.abort_transaction(AbortTransactionSpec(where, row.producer_id, row.producer_epoch, epoch))
        if any(left.producer_id == row.producer_id for left in _open_in(admin, [(row.topic, row.partition)])):
            raise ClusterError(
                f"the transaction of producer {row.producer_id} is still open in {row.topic}-{row.partition}"
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

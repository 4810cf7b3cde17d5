"""A topic made again under another name: same partitions and configs, and its records if wanted.

Records keep partition, order, key, value, headers and timestamp; their offsets begin anew. What is copied is what was
there at the start and is committed: records of aborted or unfinished transactions stay behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from millstream.cluster import topics
from millstream.cluster.answers import refuse_client
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput, ClusterError
from millstream.cluster.positions import Position
from millstream.cluster.records_out import Reader

FLUSH_SECONDS = 60.0


class Cloned(NamedTuple):
    source: str
    target: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    records: int
    bytes: int


def clone(
    connection: Connection,
    source: str,
    target: str,
    *,
    configs: Mapping[str, str] | None = None,
    replication_factor: int | None = None,
    data: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Cloned:
    """Makes `target` like `source`, `configs` over those of the source; with `data` the records follow.

    `progress` is told how many records are copied, and of how many at most.
    """
    if source == target:
        raise BadInput(f"TARGET: {target} is the source itself, give another name")
    original = topics.describe_topic(connection, source)
    with contextlib.ExitStack() as stack:
        reader = None
        if data:  # opened first: a source that cannot be read leaves no empty target behind
            reader = Reader(connection, source, Position("beginning"), isolation="read_committed")
            stack.callback(reader.close)
        made = topics.create_topic(
            connection,
            target,
            partitions=len(original.partitions),
            replication_factor=replication_factor or original.replication_factor,
            configs={**original.configs, **(configs or {})},
        )
        records, size = _copy(connection, reader, target, progress) if reader else (0, 0)
    return Cloned(source, target, made.partitions, made.replication_factor, made.configs, records, size)


def _copy(connection: Connection, reader: Reader, target: str, progress: Callable[[int, int], None]) -> tuple[int, int]:
    from confluent_kafka import KafkaException

    failures: list[Any] = []
    done = size = 0

    def told(error: Any, message: Any) -> None:
        nonlocal done, size
        if error is not None:
            failures.append(error)
            return
        done += 1
        size += len(message.value() or b"") + len(message.key() or b"")
        progress(done, total)

    producer = connection.producer(
        {"enable.idempotence": True, "linger.ms": 20, "message.max.bytes": 1_000_000_000, "compression.type": "lz4"}
    )
    total = sum(reader.ends.values()) - sum(reader.starts.values())
    for record in reader.to_end():
        optional: dict[str, Any] = {"timestamp": record.timestamp} if record.timestamp > 0 else {}
        headers: list[tuple[str, str | bytes | None]] = [*record.headers]
        while not failures:
            try:
                producer.produce(
                    target, record.value, record.key, record.partition, headers=headers, on_delivery=told, **optional
                )
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                failures.append(error.args[0])
        producer.poll(0)
        if failures:
            break
    left = producer.flush(FLUSH_SECONDS)
    if failures:
        refuse_client(f"{target} was made, but only {done} records could be copied", failures[0])
    if left:
        raise ClusterError(f"{target} was made, but only {done} records could be copied: the cluster does not answer")
    return done, size

"""A batch of records and the record of the batch in one transaction, written by one task.

    topic `millstream-batches`, compacted: key <pipeline>/<sink>/<query>, value the number of the last batch written

The transactional id belongs to the sink, so a process that was thought dead and is not cannot commit any more once
another has begun. After that, where it is not known already, the last batch is read from the topic: a batch that is
there is not written again. Readers with `isolation.level=read_committed` see each record once. Runs in Spark's Python
workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyspark import TaskContext

LEDGER = "millstream-batches"
TRANSACTION_MS = 300_000
ANSWER_SECONDS = 60.0


class Transaction(NamedTuple):
    """All that the task must know."""

    id: str
    topic: str
    key: str
    number: int
    properties: Mapping[str, Any]
    look: bool
    """Whether the batch may have been written before."""


def send(transaction: Transaction, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes the records of a batch once; how many they were."""
    producer = Producer(
        {
            "log_level": 0,
            "linger.ms": 20,
            "partitioner": "murmur2_random",  # as Spark's own writer, so that a key stays in its partition
            "transaction.timeout.ms": TRANSACTION_MS,
            **transaction.properties,
            "transactional.id": transaction.id,
        }
    )
    producer.init_transactions(ANSWER_SECONDS)  # whoever had the id before cannot commit from here on
    attempt = TaskContext.get()
    again = transaction.look or (attempt is not None and attempt.attemptNumber() > 0)
    if again and last_batch(transaction.properties, transaction.key) >= transaction.number:
        return
    producer.begin_transaction()
    try:
        count = _produce(producer, transaction.topic, batches)
        producer.produce(LEDGER, str(transaction.number), key=transaction.key, partition=0)
        producer.commit_transaction(ANSWER_SECONDS)
    except BaseException:
        with suppress(KafkaException):  # after a fatal error there is nothing to abort; the first error tells
            producer.abort_transaction(ANSWER_SECONDS)
        raise
    yield pa.RecordBatch.from_pydict({"records": [count]})


def last_batch(properties: Mapping[str, Any], key: str) -> int:
    """The number of the last batch that was committed under this key; -1: none.

    Read to the high watermark: the open transaction of another pipeline hides what comes after it until it ends.
    """
    given = {name: value for name, value in properties.items() if name != "message.max.bytes"}
    common = {"log_level": 0, **given, "group.id": LEDGER, "enable.auto.commit": False}
    with closing(Consumer({**common, "isolation.level": "read_uncommitted"})) as any_reader:
        high = any_reader.get_watermark_offsets(TopicPartition(LEDGER, 0), ANSWER_SECONDS)[1]
    reader = Consumer({**common, "isolation.level": "read_committed", "enable.partition.eof": True})
    with closing(reader):
        reader.assign([TopicPartition(LEDGER, 0, 0)])
        last, deadline = -1, time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            message = reader.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                if message.key() == key.encode():
                    last = int(message.value() or b"-1")
            elif error.code() != KafkaError._PARTITION_EOF:
                raise RuntimeError(f"{LEDGER} cannot be read: {error.str()}")
            elif (message.offset() or 0) >= high:
                return last
    raise TimeoutError(
        f"{LEDGER} cannot be read to its end in {ANSWER_SECONDS:.0f} s: a transaction is still open in it"
    )


def _produce(producer: Producer, topic: str, batches: Iterator[pa.RecordBatch]) -> int:
    count = 0
    for batch in batches:
        for row in batch.to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
            while True:
                try:
                    producer.produce(topic, row["value"], key=row["key"], headers=headers)
                    break
                except BufferError:  # its queue is full: wait for answers
                    producer.poll(1)
            count += 1
        producer.poll(0)
    return count

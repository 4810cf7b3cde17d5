#!/usr/bin/env python3
"""`make demo`: starts a Millstream server in a temporary folder and shows the log at work with confluent-kafka.

Everything goes through the public client and the public command line; nothing here knows Millstream's insides.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

RECORDS = 200_000


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def start_server(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "millstream", "serve", "--listen", "127.0.0.1:0", "--data", str(folder)]
    command += ["--set", "group.initial.rebalance.delay.ms=0"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("listening on "):
            say(f"millstream serve: {line.strip()}, {1000 * (time.perf_counter() - started):.0f} ms after its start")
            return process, line.removeprefix("listening on ").strip()
    raise SystemExit(f"the server did not start; exit status {process.wait()}")


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    (future,) = admin.create_topics([NewTopic("demo", 3, 1)]).values()
    future.result(10)
    say("topic 'demo' created: 3 partitions")


def produce(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "compression.type": "zstd"})
    started = time.perf_counter()
    for number in range(RECORDS):
        while True:
            try:
                producer.produce("demo", f"record {number}", key=str(number))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(30)
    seconds = time.perf_counter() - started
    say(f"{RECORDS:,} records written, idempotent, zstd: {RECORDS / seconds:,.0f} a second")


def transaction(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "demo"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("demo", "never seen")
    producer.flush(10)
    producer.abort_transaction(10)
    producer.begin_transaction()
    producer.produce("demo", "the last one", partition=0)
    producer.commit_transaction(10)
    say("one transaction aborted, one committed")


def consume(address: str) -> None:
    options = {"bootstrap.servers": address, "group.id": "demo", "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.subscribe(["demo"])
    values: set[bytes | None] = set()
    started, seen = 0.0, 0
    while seen < RECORDS + 1:
        messages = consumer.consume(5000 if seen else 1, 10)
        started = started or time.perf_counter()
        if not messages:
            raise SystemExit(f"only {seen} of {RECORDS + 1} records came back")
        seen += len(messages)
        values.update(message.value() for message in messages)
    seconds = time.perf_counter() - started
    assert b"never seen" not in values
    assert b"the last one" in values
    consumer.commit(asynchronous=False)
    committed = consumer.committed([TopicPartition("demo", n) for n in range(3)], 10)
    consumer.close()
    say(f"{seen:,} records read by group 'demo', read_committed: {seen / seconds:,.0f} a second")
    say(f"offsets committed: {', '.join(f'demo-{part.partition} at {part.offset:,}' for part in committed)}")


def main() -> int:
    print("Millstream: a log that every Kafka client already speaks\n")
    with tempfile.TemporaryDirectory(prefix="millstream-demo-") as folder:
        process, address = start_server(Path(folder))
        try:
            create_topic(address)
            produce(address)
            transaction(address)
            consume(address)
        finally:
            process.terminate()
            status = process.wait(30)
        say(f"stopped cleanly: exit status {status}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())

"""Configs that reach the running parts when they are changed, through a real client."""

import threading
from typing import Any

from confluent_kafka import Producer

from millstream.cluster import configs
from millstream.cluster.connection import Connection
from millstream.testing import TestServer, running_server

CHANGES = {
    "group.consumer.assignment.interval.ms": "77",
    "producer.id.expiration.ms": "12345",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "transaction.partition.verification.enable": "false",
    "log.retention.ms": "98765",
}


def on_the_loop(server: TestServer, look: Any) -> Any:
    """What `look` sees of the broker, on the thread that owns it."""
    assert server._server is not None
    broker, seen, done = server._server.broker, [], threading.Event()

    def run() -> None:
        seen.append(look(broker))
        done.set()

    server._loop.call_soon_threadsafe(run)
    assert done.wait(20)
    return seen[0]


def in_effect(broker: Any) -> dict[str, str]:
    log = broker.logs.get("before", 0)
    return {
        "group.consumer.assignment.interval.ms": str(broker.groups.config.group_consumer_assignment_interval_ms),
        "producer.id.expiration.ms": str(log.producers.expiration_ms),
        "log.cleaner.dedupe.buffer.size": str(broker.cleaner.memory_bytes),
        "transaction.partition.verification.enable": str(
            broker.transactions.config.transaction_partition_verification_enable
        ).lower(),
        "log.retention.ms": str(log.config.retention_ms),
    }


def test_a_change_reaches_the_parts_that_run_and_survives_a_restart(tmp_path: Any) -> None:
    with running_server(data=tmp_path) as server:
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        producer.produce("before", b"x")
        assert producer.flush(20) == 0
        assert not CHANGES.items() & on_the_loop(server, in_effect).items()
        configs.change(Connection(server.bootstrap_servers), "broker", configs.DEFAULT_BROKER, CHANGES, ())
        assert on_the_loop(server, in_effect) == CHANGES
    with running_server(data=tmp_path) as server:
        assert on_the_loop(server, in_effect) == CHANGES

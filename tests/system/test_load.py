"""A bounded load: many clients at once on one server; everything arrives once, and memory stays small."""

import socket
import struct
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.millstream_server import MillstreamServer

PRODUCERS, RECORDS, PARTITIONS, GROUPS = 6, 15_000, 6, 3
MEMORY_BOUND_KB = 200_000


def resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.timeout(240)
def test_many_producers_and_groups_at_once() -> None:
    topic = "load"
    with MillstreamServer() as server:
        address = server.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(20)
        failures: list[str] = []
        expected = {f"{producer}:{number}" for producer in range(PRODUCERS) for number in range(RECORDS)}

        def produce(index: int) -> None:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append(str(error))

            codec = ("none", "gzip", "snappy", "lz4", "zstd", "none")[index]
            producer = Producer(
                {"bootstrap.servers": address, "enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
            )
            for number in range(RECORDS):
                value = f"{index}:{number}"
                while True:
                    try:
                        producer.produce(topic, value, key=value, on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(0.05)
                producer.poll(0)
            if producer.flush(60):
                failures.append("not everything was delivered")

        def consume(group: int) -> None:
            consumer = Consumer(
                {
                    "bootstrap.servers": address,
                    "group.id": f"group-{group}",
                    "auto.offset.reset": "earliest",
                    "group.protocol": "consumer" if group == 0 else "classic",
                }
            )
            consumer.subscribe([topic])
            seen: list[str] = []
            while len(seen) < len(expected):
                messages = consumer.consume(5_000, 30)
                if not messages:
                    failures.append(f"group {group} got nothing for 30 s")
                    break
                seen += [(message.value() or b"").decode() for message in messages if message.error() is None]
            consumer.close()
            if len(seen) != len(expected) or set(seen) != expected:
                failures.append(f"group {group} got {len(seen)} records, {len(set(seen))} different ones")

        threads = [threading.Thread(target=produce, args=(index,)) for index in range(PRODUCERS)]
        threads += [threading.Thread(target=consume, args=(group,)) for group in range(GROUPS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert resident_kb(server.pid) < MEMORY_BOUND_KB


def fetch_v4(topic: str) -> bytes:
    raw = topic.encode()
    body = struct.pack(">hhih", 1, 4, 7, -1) + struct.pack(">iiiib", -1, 100, 1, 50_000_000, 0)
    body += struct.pack(">ih", 1, len(raw)) + raw + struct.pack(">iiqi", 1, 0, 0, 50_000_000)
    return struct.pack(">i", len(body)) + body


@pytest.mark.timeout(120)
def test_peers_that_announce_or_ask_for_much_and_take_nothing_hold_little_memory() -> None:
    topic = "much"
    with MillstreamServer() as server:
        producer = Producer({"bootstrap.servers": server.bootstrap_servers})
        for _ in range(100):
            producer.produce(topic, b"x" * 900_000)
            producer.flush(30)
        host, _, port = server.bootstrap_servers.partition(":")
        peers = [socket.create_connection((host, int(port)), timeout=20) for _ in range(60)]
        try:
            for index, peer in enumerate(peers):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                if index % 2:
                    peer.sendall(fetch_v4(topic) * 20)  # 50 MB each, never read
                else:
                    peer.sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)  # 100 MB announced, never sent
            producer.produce(topic, b"others go on")
            assert producer.flush(30) == 0
            assert resident_kb(server.pid) < MEMORY_BOUND_KB
        finally:
            for peer in peers:
                peer.close()

"""Orders that come in while the mirrors run, with keys or none, and headers twice or empty.

They are written in transactions of which some are aborted, so that the source has holes that must not be copied.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid

from confluent_kafka import Producer

from example_kit.clients import patient

TICK = 0.05
ABORTED_EVERY = 7
SECONDS = 30.0


class Orders(threading.Thread):
    """Writes orders to a topic of one cluster, `rate` a second for so many seconds."""

    def __init__(self, bootstrap: str, where: str, topic: str, *, rate: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self._address = bootstrap
        self._where = where
        self._topic = topic
        self._rate = rate
        self._seconds = seconds
        self.written: list[str] = []
        self.aborted = 0

    def run(self) -> None:
        name = f"orders-{self._where}-{uuid.uuid4().hex[:8]}"
        producer = Producer({**patient(self._address), "transactional.id": name, "linger.ms": 5})
        producer.init_transactions(SECONDS)
        begun = time.monotonic()
        transactions = made = 0
        while (passed := time.monotonic() - begun) < self._seconds:
            transactions += 1
            producer.begin_transaction()
            ids = [f"{self._where}-{number}" for number in range(made, int(passed * self._rate) + 1)]
            made += len(ids)
            for order in ids:
                self._write(producer, order)
            if transactions % ABORTED_EVERY:
                producer.commit_transaction(SECONDS)
                self.written += ids
            else:
                producer.abort_transaction(SECONDS)
                self.aborted += len(ids)
            time.sleep(TICK)

    def _write(self, producer: Producer, order: str) -> None:
        cents = random.randrange(100, 100_000)
        customer = random.randrange(100)
        value = json.dumps({"id": order, "customer": customer, "cents": cents}).encode()
        ordered_at = int(time.time() * 1000) - random.randrange(3_600_000)  # typed in up to an hour later
        producer.produce(
            self._topic,
            key=None if customer == 0 else f"customer-{customer}".encode(),
            value=value,
            headers=[("order", order), ("tag", b"web"), ("tag", b"new" if customer % 2 else None)],
            timestamp=ordered_at,
        )


def write_profiles(bootstrap: str, where: str, count: int) -> None:
    """Profiles of one cluster's customers, and the removal (a null value) of every tenth."""
    producer = Producer({**patient(bootstrap), "linger.ms": 5})
    for number in range(count):
        value = None if number % 10 == 9 else json.dumps({"name": f"customer {number} of {where}"}).encode()
        producer.produce("profiles", key=f"{where}-{number}", value=value)
    producer.flush(SECONDS)

"""What goes on, out of the topics alone: for people in a table, for Prometheus on /metrics.

It reads all topics from their beginning, so that its figures are the same however often it is started, and commits how
far it is to group `my-connect-usage` only for others to see. Diagnostics are the lag of both groups, rates, and what
was refused and why.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, deque
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from prometheus_client import CollectorRegistry, Gauge, Histogram, start_http_server
from prometheus_client import Counter as CounterMetric

from example_kit import parent_says_stop, tell
from example_kit.clients import patient
from example_kit.reading import header
from my_connect.diagnostics import lag_of
from my_connect.topics import CONNECTIONS, DEAD_LETTERS, DELIVERY, INBOXES, MESSAGES, TOPICS, USAGE

WINDOW = 10.0
"""Seconds: who sent a message within them is active."""
MINUTE = 60.0
KEPT = 20_000
"""Latencies, the last so many, for the percentiles."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SECONDS = 30.0


class Metrics:
    """What Prometheus sees."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.messages = CounterMetric("my_connect_messages", "Messages sent", registry=self.registry)
        self.delivered = CounterMetric("my_connect_delivered", "Messages delivered", registry=self.registry)
        self.refused = CounterMetric("my_connect_refused", "Messages refused", ["reason"], registry=self.registry)
        self.latency = Histogram(
            "my_connect_delivery_seconds", "From sending to the inbox", registry=self.registry, buckets=BUCKETS
        )
        self.active = Gauge("my_connect_active_people", "People who sent a message lately", registry=self.registry)
        self.connections = Gauge("my_connect_connections", "Pairs that are connected", registry=self.registry)
        self.lag = Gauge("my_connect_lag", "Records that a group has yet to read", ["group"], registry=self.registry)


class Usage:
    """The figures."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._last_sent: dict[str, float] = {}
        self._sent: deque[float] = deque()
        self._latencies: deque[float] = deque(maxlen=KEPT)
        self._pairs: set[bytes] = set()
        self._degrees: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def see(self, record: Message, now: float) -> None:
        """One record of any of the topics; a malformed one counts where it is refused."""
        topic, value = record.topic(), record.value() or b""
        if topic == MESSAGES:
            self.metrics.messages.inc()
            self._counts["sent"] += 1
            message = _json(value)
            if message is not None:
                self._sent.append(message["sent_at"])
                self._last_sent[message["from"]] = message["sent_at"]
        elif topic == INBOXES:
            latency = max(now - json.loads(value)["sent_at"], 0.0)
            self.metrics.delivered.inc()
            self.metrics.latency.observe(latency)
            self._counts["delivered"] += 1
            self._latencies.append(latency)
        elif topic == DEAD_LETTERS:
            reason = header(record, "error")
            self.metrics.refused.labels(reason).inc()
            self._refused[reason] += 1
        elif topic == CONNECTIONS:
            self._connection(record.key(), json.loads(value))

    def _connection(self, key: Any, value: dict[str, Any]) -> None:
        connected = value["connected"]
        if connected == (key in self._pairs):
            return
        (self._pairs.add if connected else self._pairs.discard)(key)
        for person in value["people"]:
            self._degrees[person] += 1 if connected else -1

    def figures(self, now: float) -> dict[str, Any]:
        """All of it, now."""
        while self._sent and self._sent[0] < now - MINUTE:
            self._sent.popleft()
        self._last_sent = {person: at for person, at in self._last_sent.items() if at >= now - WINDOW}
        self.metrics.active.set(len(self._last_sent))
        self.metrics.connections.set(len(self._pairs))
        ordered = sorted(self._latencies)
        return {
            "sent": self._counts["sent"],
            "delivered": self._counts["delivered"],
            "refused": dict(self._refused),
            "messages_a_minute": _per_minute(self._sent, now),
            "active_people": len(self._last_sent),
            "connections": len(self._pairs),
            "most_connected": dict(self._degrees.most_common(3)),
            "latency_ms": {
                name: round(1000 * percentile(ordered, share), 1) for name, share in (("p50", 0.5), ("p99", 0.99))
            },
        }


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def _per_minute(sent: deque[float], now: float) -> int:
    """Of less than a minute, what it would be in one."""
    return round(len(sent) * MINUTE / max(now - sent[0], 1.0)) if sent else 0


def _json(value: str | bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(value)
        return found if isinstance(found, dict) and {"from", "sent_at"} <= found.keys() else None
    except ValueError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    stop = parent_says_stop()
    usage = Usage()
    server, _ = start_http_server(options.port, "127.0.0.1", usage.metrics.registry)
    tell(metrics=f"http://127.0.0.1:{server.server_port}/metrics")
    settings: dict[str, str | bool | int] = {
        **patient(options.bootstrap),
        "group.id": USAGE,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,  # it tells the position behind transaction markers too
        "fetch.wait.max.ms": 50,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.list_topics(timeout=SECONDS)
        parts = [(topic, number) for topic, (partitions, _) in TOPICS.items() for number in range(partitions)]
        consumer.assign([TopicPartition(*part, OFFSET_BEGINNING) for part in parts])
        positions: dict[tuple[str, int], int] = {}
        told = 0.0
        while not stop.is_set():
            record = consumer.poll(0.1)
            now = time.time()
            if record is not None:
                positions[record.topic() or "", record.partition() or 0] = _seen(usage, record, now)
            if now - told > 0.5:
                try:
                    lag = _progress(consumer, options.bootstrap, positions, usage.metrics)
                    tell(**usage.figures(now), lag=lag)
                except KafkaException as failure:  # the cluster is away: figures come again when it does
                    tell(trouble=failure.args[0].str())
                told = time.time()


def _progress(
    consumer: Consumer, bootstrap: str, positions: dict[tuple[str, int], int], metrics: Metrics
) -> dict[str, int]:
    """Commits how far this process is; how far the groups are behind."""
    offsets = [TopicPartition(*part, offset) for part, offset in positions.items()]
    if offsets:
        consumer.commit(offsets=offsets, asynchronous=False)
    lag = {group: lag_of(bootstrap, group, topics) for group, topics in WATCHED.items()}
    for group, behind in lag.items():
        metrics.lag.labels(group).set(behind)
    return lag


WATCHED = {DELIVERY: [MESSAGES], USAGE: list(TOPICS)}
"""Group -> the topics that it reads."""


def _seen(usage: Usage, record: Message, now: float) -> int:
    """The position after this record, or at an end of which the client tells."""
    error = record.error()
    if error is None:
        usage.see(record, now)
        return (record.offset() or 0) + 1
    if error.code() == KafkaError._PARTITION_EOF:
        return record.offset() or 0
    raise KafkaException(error)


if __name__ == "__main__":
    main()

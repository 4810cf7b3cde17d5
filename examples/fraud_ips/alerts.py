"""Somebody who reads topic `fraudip` and raises the alarm: the reason why it must be fast."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from types import TracebackType

from confluent_kafka import Consumer, TopicPartition

from example_kit import Run
from example_kit.clients import quiet
from example_kit.reading import text

TOPIC = "fraudip"
SAID_EVERY = 1.0
"""Seconds; a person cannot read more. All are counted."""


class Alerts:
    """Alert lines while it runs; `milliseconds`: how long after the request each alert came."""

    def __init__(self, run: Run, sent: Mapping[str, float]) -> None:
        """`sent`: address -> when its request was sent."""
        self.milliseconds: list[float] = []
        self._run = run
        self._sent = sent
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Alerts:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        settings = {**quiet(self._run.bootstrap), "group.id": "fraud-alerts", "enable.auto.commit": False}
        with closing(Consumer(settings)) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            said, unsaid = 0.0, 0
            while not self._stop.is_set():
                record = consumer.poll(0.1)
                if record is None or record.error() is not None:
                    continue
                now = time.time()
                late = (now - self._sent[text(record.key())]) * 1000
                self.milliseconds.append(late)
                if now - said < SAID_EVERY:
                    unsaid += 1
                    continue
                fraud = json.loads(text(record.value()))
                more = f" (and {unsaid} since the last line)" if unsaid else ""
                what = f"{fraud['request_url']} -> {fraud['status_code']}"
                self._run.say(f"ALERT {fraud['ip']} asked for {what}, {late:.0f} ms ago{more}", "red")
                said, unsaid = now, 0

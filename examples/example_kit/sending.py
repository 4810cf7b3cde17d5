"""Records sent to topics so that none is lost in silence: what the log has not acknowledged is an error."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from example_kit.errors import ExampleError


class Sender:
    """A producer that counts. It sits out a cluster's absence; a record that is refused for good is told at the end."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = Producer(settings)
        self._refused: list[str] = []
        self.acknowledged = 0

    def send(self, topic: str, value: str, **record: Any) -> None:
        """The other arguments are those of `confluent_kafka.Producer.produce`."""
        while True:
            try:
                self._producer.produce(topic, value, on_delivery=self._heard, **record)
                break
            except BufferError:  # more wait for the log than this can hold
                self._producer.poll(0.1)
        self._producer.poll(0)

    def finish(self) -> int:
        """Waits for all answers. How many records the log has acknowledged; ExampleError if it has refused some."""
        while self._producer.flush(1.0):
            pass
        if self._refused:
            raise ExampleError(f"the log refused {len(self._refused):,} records: {self._refused[0]}")
        return self.acknowledged

    def _heard(self, error: KafkaError | None, record: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self._refused.append(f"{record.topic()}: {error.str()}")

"""Waiting until pipelines have done what there is to do: seen from outside, by the positions that they commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from example_kit.clients import quiet
from example_kit.errors import ExampleError
from example_kit.pipelines import Pipelines
from example_kit.reading import partitions_of

SECONDS = 120.0
ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.1


def wait_until(pipelines: Pipelines, done: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Until it is so; ExampleError if a pipeline fails, or it takes too long. `what`: the sentence for that."""
    deadline = time.monotonic() + seconds
    while not done():
        pipelines.check()
        if time.monotonic() > deadline:
            raise ExampleError(f"{what} within {seconds:.0f} s (see {pipelines.log})")
        time.sleep(LOOK_SECONDS)


def wait_until_read(pipelines: Pipelines, bootstrap: str, topics: Mapping[str, Iterable[str]]) -> None:
    """Until each pipeline (name -> its topics) has finished all records that are there now."""
    with ExitStack() as stack:
        for name, read in topics.items():
            group = f"millstream-{name}"
            settings = {**quiet(bootstrap), "group.id": group, "enable.auto.commit": False}
            consumer = stack.enter_context(closing(Consumer(settings)))
            places = [TopicPartition(topic, number) for topic in read for number in partitions_of(consumer, topic)]
            ends = {
                (place.topic, place.partition): consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)[1]
                for place in places
            }

            def is_there(consumer: Consumer = consumer, ends: dict[tuple[str, int], int] = ends) -> bool:
                asked = [TopicPartition(*place) for place, end in ends.items() if end]
                try:
                    committed = consumer.committed(asked, timeout=ANSWER_SECONDS)
                except KafkaException:  # the cluster is away: asked again, as long as there is time
                    return False
                return all(place.offset >= ends[place.topic, place.partition] for place in committed)

            wait_until(pipelines, is_there, f"pipeline {name} has not read all of {', '.join(read)}")

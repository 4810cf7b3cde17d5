"""Topics, and whether there is a cluster for them, with a plain Kafka admin client."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from example_kit.errors import ExampleError

SECONDS = 30.0
KNOCK_SECONDS = 5.0
UNREACHABLE = 3


def check_cluster(bootstrap: str) -> None:
    """ExampleError if no cluster answers there."""
    try:
        AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=KNOCK_SECONDS)
    except KafkaException as error:
        raise ExampleError(f"no cluster answers at {bootstrap}: {error.args[0].str()}", UNREACHABLE) from error


def create_topic(
    bootstrap: str, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None, fresh: bool = False
) -> None:
    """Makes the topic. One that is there already is used as it is, or, if it must be `fresh`, is an error."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(name, partitions, config=dict(config or {}))
    (future,) = admin.create_topics([topic], request_timeout=SECONDS).values()
    try:
        future.result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ExampleError(f"topic {name} cannot be made on {bootstrap}: {error.args[0].str()}") from error
        if fresh:
            raise ExampleError(
                f"topic {name} is on {bootstrap} already, and its old records would spoil the result; "
                f"`millstream topic delete {name} --bootstrap {bootstrap}` removes it"
            ) from error
    _wait_until_known(admin, name)


def _wait_until_known(admin: AdminClient, name: str) -> None:
    """Until every partition has a leader: Apache Kafka spreads the news only after it has answered."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        topic = admin.list_topics(name, timeout=SECONDS).topics[name]
        if topic.error is None and topic.partitions and all(part.leader >= 0 for part in topic.partitions.values()):
            return
        time.sleep(0.05)
    raise ExampleError(f"topic {name} had no leader for {SECONDS:.0f} s")

"""The server that a suite runs against, and what every test needs to do with it: topics, produce, fetch, unique names.

`Cluster` knows the address and, where the suite started the server itself, its data folder. The helpers speak the raw
protocol in one fixed version each; tests of an API call it themselves in the version they are about.
"""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from support import batches
from support.raw import RawClient

_names = itertools.count(1)
_run = f"{os.getpid():x}{int(time.time()) & 0xFFFFF:x}"


def unique(prefix: str) -> str:
    """A name that no other test, run or suite uses."""
    return f"{prefix}-{_run}-{next(_names)}"


def eventually(check: Callable[[], Any], timeout: float = 15, pause: float = 0.02) -> Any:
    """Repeats the check until it returns something true; an AssertionError inside counts as not yet."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            result = check()
            if result:
                return result
            failure = None
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure or AssertionError(f"not within {timeout} s: {check}")
        time.sleep(pause)


@dataclass(frozen=True)
class Cluster:
    """Where the server is and what it is (`millstream`, `apache-kafka` or `remote`)."""

    bootstrap_servers: str
    kind: str
    data_folder: Path | None = None
    pid: int | None = None

    def connect(self, client_id: str | None = "behaviour") -> RawClient:
        return RawClient(self.bootstrap_servers, client_id=client_id)


@dataclass(frozen=True)
class Topic:
    name: str
    id: UUID


def create_topic(raw: RawClient, partitions: int = 1, name: str | None = None, **configs: str) -> Topic:
    """A new topic, known to the broker when this returns. Config names are written with `_` for `.`."""
    name = name or unique("topic")
    config_list = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    spec = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": config_list}
    answer = raw.call("create_topics", 7, topics=[spec], timeout=30000).topics[0]
    assert answer.error_code == ErrorCode.none, answer

    eventually(lambda: topic_is_ready(raw, name, partitions))
    return Topic(name, answer.topic_id)


def describe_topic(raw: RawClient, name: str) -> Any:
    """What Metadata says of one topic; never creates it."""
    return raw.call("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics[0]


def topic_is_ready(raw: RawClient, name: str, partitions: int) -> bool:
    """Whether the topic is in the metadata with that many partitions, and each of them answers.

    Apache Kafka's broker shows a new topic in its metadata a moment before the partitions have their leader epoch.
    """
    found = describe_topic(raw, name)
    if found.error_code != ErrorCode.none or len(found.partitions) != partitions:
        return False
    parts = [{"partition_index": n, "timestamp": -1, "current_leader_epoch": 0} for n in range(partitions)]
    offsets = raw.call("list_offsets", 10, replica_id=-1, topics=[{"name": name, "partitions": parts}])
    return all(part.error_code == ErrorCode.none for part in offsets.topics[0].partitions)


def produce(
    raw: RawClient,
    topic: Topic | str,
    *records: batches.Rec | bytes,
    partition: int = 0,
    data: bytes | None = None,
    acks: int = -1,
    transactional_id: str | None = None,
    version: int = 12,
    **options: Any,
) -> Any:
    """Produces one batch and returns the partition's part of the response; `data` replaces the honest batch."""
    name = topic.name if isinstance(topic, Topic) else topic
    payload = data if data is not None else batches.batch(records, **options)
    part = {"index": partition, "records": payload}
    where: dict[str, Any] = {"name": name}
    if version >= 13:
        assert isinstance(topic, Topic)
        where = {"topic_id": topic.id}
    request = {"acks": acks, "timeout": 10000, "topic_data": [{**where, "partition_data": [part]}]}
    response = raw.call("produce", version, transactional_id=transactional_id, **request)
    return response.responses[0].partition_responses[0]


def fetch(
    raw: RawClient,
    topic: Topic,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    version: int = 17,
    **more: Any,
) -> Any:
    """A sessionless fetch of one partition; returns the partition's part of the response."""
    where: dict[str, Any] = {"topic_id": topic.id} if version >= 13 else {"topic": topic.name}
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": partition_max_bytes, **more}
    limits: dict[str, Any] = {"max_wait": max_wait, "min_bytes": min_bytes, "max_bytes": max_bytes}
    response = raw.call(
        "fetch", version, **limits, isolation_level=isolation_level, topics=[{**where, "partitions": [part]}]
    )
    return response.responses[0].partitions[0]


def list_offset(
    raw: RawClient, topic: Topic | str, timestamp: int, partition: int = 0, isolation_level: int = 0
) -> Any:
    name = topic.name if isinstance(topic, Topic) else topic
    part = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": -1}
    request = [{"name": name, "partitions": [part]}]
    response = raw.call("list_offsets", 10, replica_id=-1, isolation_level=isolation_level, topics=request)
    return response.topics[0].partitions[0]


COORDINATOR_NOT_YET = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)


def coordinated(raw: RawClient, api: str, version: int, **body: Any) -> Any:
    """Calls until the coordinator is there: on a fresh cluster its internal topic is made and loaded first."""

    def answered() -> Any:
        response = raw.call(api, version, **body)
        return None if response.error_code in COORDINATOR_NOT_YET else response

    return eventually(answered)


def init_producer(raw: RawClient, transactional_id: str | None = None, timeout: int = 60000, **more: Any) -> Any:
    """InitProducerId, once the coordinator is ready."""
    if transactional_id is not None:
        find_coordinator(raw, 1, transactional_id)
    options = {"transactional_id": transactional_id, "transaction_timeout": timeout, **more}
    return coordinated(raw, "init_producer_id", 5, **options)


def find_coordinator(raw: RawClient, key_type: int, key: str) -> None:
    """Waits until the coordinator of a group (0) or a transactional id (1) can be found."""

    def found() -> bool:
        (answer,) = raw.call("find_coordinator", 6, key_type=key_type, coordinator_keys=[key]).coordinators
        return bool(answer.error_code == ErrorCode.none)

    eventually(found)


def wait_for_coordinators(raw: RawClient) -> None:
    """Until every partition of both internal topics has its coordinator; a fresh cluster makes them on first use."""
    for key_type in (0, 1):
        find_coordinator(raw, key_type, "warm-up")
    names = [f"warm-up-{number}" for number in range(20)]

    def loaded() -> bool:
        groups = raw.call("describe_groups", 5, groups=names).groups
        transactions = raw.call("describe_transactions", 0, transactional_ids=names).transaction_states
        return not any(answer.error_code in COORDINATOR_NOT_YET for answer in (*groups, *transactions))

    eventually(loaded, timeout=60)

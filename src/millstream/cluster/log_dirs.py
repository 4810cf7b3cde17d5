"""What DescribeLogDirs tells: which replica lies on which broker, and how large it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class ReplicaOnDisk(NamedTuple):
    broker: int
    topic: str
    partition: int
    size: int
    is_future: bool
    """It is being copied from another folder and does not count yet."""


def replicas(answers: Iterable[Mapping[str, Any]]) -> Iterator[ReplicaOnDisk]:
    """All replicas in the answers of kafka-python's `describe_log_dirs`."""
    for answer in answers:
        for folder in answer["log_dirs"]:
            for topic in folder["topics"]:
                for part in topic["partitions"]:
                    yield ReplicaOnDisk(
                        answer["broker"],
                        topic["name"],
                        part["partition_index"],
                        part["partition_size"],
                        part["is_future_key"],
                    )

"""DescribeLogDirs: the data folder, the space on its disk, and the size of each partition in it (KIP-113).

Departures from Apache Kafka: none known. A partition that was never written to has a size of 0 whether it has a folder
or not.

- v1: as said. v2: flexible. v3: top-level error. v4: size of and space on the disk (KIP-827).
- v5: whether the folder is cordoned (KIP-1066); it never is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.broker.apis.registry import api
from millstream.broker.topics import Partition
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from millstream.broker.broker import Broker
    from millstream.broker.context import RequestContext


@api(DescribeLogDirsRequest, versions=(1, 5))
def describe_log_dirs(
    broker: Broker, request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    root = os.path.realpath(broker.logs.root)
    try:
        disk = os.statvfs(root)
    except OSError:
        failed = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=root)
        return DescribeLogDirsResponse(results=[failed])
    result = DescribeLogDirsResult(
        log_dir=root,
        topics=_topics(broker, request),
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )
    return DescribeLogDirsResponse(results=[result])


def _topics(broker: Broker, request: DescribeLogDirsRequest) -> list[DescribeLogDirsTopic]:
    if request.topics is None:
        wanted = {topic.name: topic.partitions for topic in broker.topics}
    else:
        wanted = {}
        for asked in request.topics:
            found = [broker.topics.partition(asked.topic, index) for index in sorted(set(asked.partitions))]
            wanted[asked.topic] = [partition for partition in found if partition is not None]
    return [
        DescribeLogDirsTopic(
            name=name,
            partitions=[
                DescribeLogDirsPartition(partition_index=partition.index, partition_size=_size(partition))
                for partition in partitions
            ],
        )
        for name, partitions in wanted.items()
        if partitions
    ]


def _size(partition: Partition) -> int:
    log = partition.opened_log
    return 0 if log is None else log.size

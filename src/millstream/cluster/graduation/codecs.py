"""The codec of a partition's batches, from a look at its first and its last ones.

A client that reads records does not learn how they were compressed, so the batches' headers are fetched: at most
`SAMPLE_BYTES` from the log start and from the end. The last batch decides: it is what producers do now.

    batch header: base offset 8, length 4, leader epoch 4, magic 1, crc 4, attributes 2 (the codec is its lowest 3 bits)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from millstream.cluster.graduation.plan import Partition
from millstream.cluster.graduation.requests import leaders, send

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
SAMPLE_BYTES = 4096
_HEADER = struct.Struct(">qiibih")
_LENGTH_AND_OFFSET = 12
_CONTROL = 0x20


def sample(admin: KafkaAdminClient, bounds: Mapping[Partition, tuple[int, int]]) -> dict[Partition, str]:
    """The codec of every partition that has records, by first and end offset."""
    found: dict[Partition, str] = {}
    filled = {where: ends for where, ends in bounds.items() if ends[1] > ends[0]}
    leading = leaders(admin, (where.topic for where in filled))
    for offset_of in (lambda ends: ends[0], lambda ends: ends[1] - 1):
        by_leader: dict[int, dict[Partition, int]] = {}
        for where, ends in filled.items():
            by_leader.setdefault(leading[where], {})[where] = offset_of(ends)
        for leader, wanted in by_leader.items():
            found.update(_fetch(admin, leader, wanted))
    return found


def _fetch(admin: KafkaAdminClient, leader: int, wanted: Mapping[Partition, int]) -> Iterator[tuple[Partition, str]]:
    from kafka.protocol.consumer import FetchRequest

    topic_class = FetchRequest.FetchTopic
    topics: dict[str, list[object]] = {}
    for where, offset in wanted.items():
        topics.setdefault(where.topic, []).append(
            topic_class.FetchPartition(
                partition=where.partition,
                current_leader_epoch=-1,
                fetch_offset=offset,
                log_start_offset=-1,
                partition_max_bytes=SAMPLE_BYTES,
            )
        )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=SAMPLE_BYTES * len(wanted),
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic_class(topic=name, partitions=parts) for name, parts in topics.items()],
        forgotten_topics_data=[],
        rack_id="",
        max_version=12,  # from 13 on topics go by id
    )
    for topic in send(admin, request, leader).responses:
        for part in topic.partitions:
            codec = codec_of(bytes(part.records or b""))
            if codec is not None:
                yield Partition(topic.topic, part.partition_index), codec


def codec_of(batches: bytes) -> str | None:
    """The codec of the last batch whose header is here and which is not a transaction marker."""
    codec, at = None, 0
    while at + _HEADER.size <= len(batches):
        _, length, _, magic, _, attributes = _HEADER.unpack_from(batches, at)
        if magic == 2 and not attributes & _CONTROL and attributes & 7 < len(NAMES):
            codec = NAMES[attributes & 7]
        at += _LENGTH_AND_OFFSET + max(length, 1)
    return codec

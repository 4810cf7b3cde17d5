"""The codec of a partition's batches, from a look at its last one.

A client that reads records does not learn how they were compressed, so a batch is fetched and its header read: the last
one, which is what producers do now, or, if that is a transaction marker, the first.

    batch header: base offset 8, length 4, leader epoch 4, magic 1, crc 4, attributes 2 (the codec is its lowest 3 bits)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
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
    for where, (first, end) in filled.items():
        for offset in (end - 1, first):
            codec = codec_of(_fetch(admin, leading[where], where, offset))
            if codec is not None:
                found[where] = codec
                break
    return found


def _fetch(admin: KafkaAdminClient, leader: int, where: Partition, offset: int) -> bytes:
    """One partition a request: a broker sends a batch that is bigger than was asked for only if it is the first."""
    from kafka.protocol.consumer import FetchRequest

    topic_class = FetchRequest.FetchTopic
    partition = topic_class.FetchPartition(
        partition=where.partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=SAMPLE_BYTES,
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=SAMPLE_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic_class(topic=where.topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
        max_version=12,  # from 13 on topics go by id
    )
    return b"".join(
        bytes(part.records or b"") for topic in send(admin, request, leader).responses for part in topic.partitions
    )


def codec_of(batches: bytes) -> str | None:
    """The codec of the last batch whose header is here and which is not a transaction marker."""
    codec, at = None, 0
    while at + _HEADER.size <= len(batches):
        _, length, _, magic, _, attributes = _HEADER.unpack_from(batches, at)
        if magic == 2 and not attributes & _CONTROL and attributes & 7 < len(NAMES):
            codec = NAMES[attributes & 7]
        at += _LENGTH_AND_OFFSET + max(length, 1)
    return codec

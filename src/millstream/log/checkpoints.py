"""The small text files at the root of the data folder and in each log's folder, as Kafka writes them.

`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `replication-offset-checkpoint` (high watermarks) and
`cleaner-offset-checkpoint`: a line with the version 0, a line with the number of entries, then in each line
`topic partition offset`.
`meta.properties`: the cluster's and the node's identity. `.kafka_cleanshutdown`: there only between a clean stop and
the next start. `partition.metadata` in a log's folder: the topic's id.

All are replaced as a whole, so a crash leaves the old content or the new. One that cannot be understood is as good as
missing: offsets then start from what the logs themselves say, which costs a longer recovery and loses nothing.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from millstream.log.filesystem import FileSystem

RECOVERY_POINT_NAME: Final = "recovery-point-offset-checkpoint"
LOG_START_NAME: Final = "log-start-offset-checkpoint"
REPLICATION_NAME: Final = "replication-offset-checkpoint"
CLEANER_NAME: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN_NAME: Final = ".kafka_cleanshutdown"
META_NAME: Final = "meta.properties"
PARTITION_METADATA_NAME: Final = "partition.metadata"

TopicPartition = tuple[str, int]


def encode_uuid(value: UUID) -> str:
    """Kafka's spelling of a UUID: URL-safe base64 without padding."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def read_offsets(file_system: FileSystem, path: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint; empty if there is none or it is not sound."""
    if not file_system.exists(path):
        return {}
    lines = file_system.read_bytes(path).decode(errors="replace").splitlines()
    offsets: dict[TopicPartition, int] = {}
    try:
        for line in lines[2 : 2 + int(lines[1])]:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
    except (ValueError, IndexError):
        return {}
    return offsets


def write_partition_metadata(file_system: FileSystem, directory: str, topic_id: UUID, *, sync: bool) -> None:
    content = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    file_system.write_atomically(f"{directory}/{PARTITION_METADATA_NAME}", content.encode(), sync=sync)


def read_partition_metadata(file_system: FileSystem, directory: str) -> UUID | None:
    """The topic's id; None if the file is missing or not sound."""
    path = f"{directory}/{PARTITION_METADATA_NAME}"
    if not file_system.exists(path):
        return None
    for line in file_system.read_bytes(path).decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            try:
                return decode_uuid(value.strip())
            except ValueError:
                return None
    return None


def read_properties(file_system: FileSystem, path: str) -> dict[str, str] | None:
    """A properties file; None if it is not there."""
    if not file_system.exists(path):
        return None
    properties: dict[str, str] = {}
    for line in file_system.read_bytes(path).decode(errors="replace").splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            properties[name.strip()] = value.strip()
    return properties


def write_properties(file_system: FileSystem, path: str, properties: Mapping[str, str]) -> None:
    content = "".join(f"{name}={value}\n" for name, value in properties.items())
    file_system.write_atomically(path, content.encode())


def write_clean_shutdown(file_system: FileSystem, root: str, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch})
    file_system.write_atomically(f"{root}/{CLEAN_SHUTDOWN_NAME}", content.encode())


def take_clean_shutdown(file_system: FileSystem, root: str) -> bool:
    """Whether the last stop was clean. The marker is gone afterwards, for good."""
    path = f"{root}/{CLEAN_SHUTDOWN_NAME}"
    if not file_system.exists(path):
        return False
    file_system.remove(path)
    file_system.sync_directory(root)
    return True

"""What a group is to the coordinator, whatever protocol its members speak.

Two kinds implement `Group`: the classic one (JoinGroup and SyncGroup, the leader assigns) and the consumer one of
KIP-848 (ConsumerGroupHeartbeat, the coordinator assigns). Offsets, listing and deletion are the same for both and ask
only for what stands here. `TopicsView` is what the coordinator may know about topics; the broker implements it.

A validation raises `KafkaError` with the code that the response carries; it returns when the request may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from millstream.broker.coordinator_log import KeyValue

UNKNOWN_MEMBER_ID = ""
UNKNOWN_GENERATION_ID = -1
CONSUMER_PROTOCOL_TYPE = "consumer"
CLASSIC = "classic"
CONSUMER = "consumer"

PartitionValidator = Callable[[str, bytes, int], None]
"""Topic name, topic id (ZERO_UUID if there is none) and partition of one offset to commit; raises KafkaError."""


class TopicsView(Protocol):
    """The topics of the broker as the group coordinator sees them."""

    def topic_id(self, name: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def partition_count(self, name: str) -> int | None: ...

    def topic_names(self) -> Iterable[str]: ...


class Group(Protocol):
    """One group of either kind."""

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> str:
        """`classic` or `consumer`."""

    @property
    def protocol_type(self) -> str:
        """As listed: `consumer` for consumers, something else for Connect and the like, empty if unknown."""

    @property
    def member_count(self) -> int: ...

    def state_name(self) -> str:
        """The state as ListGroups and the describing APIs print it: `Stable`, `PreparingRebalance`, `Assigning`, ..."""

    def is_empty(self) -> bool:
        """Whether the group has no members."""

    def has_member(self, member_id: str) -> bool: ...

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_member_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionValidator | None:
        """Whether a member may commit offsets now; a further check of each partition where that is not all."""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def validate_offset_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Offsets of topics a group is subscribed to are neither deleted nor expired."""

    def validate_delete(self) -> None: ...

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """When the retention of an offset committed at that time begins; None: it does not expire for now."""

    def tombstones(self) -> list[KeyValue]:
        """The records that delete the group itself (its offsets are the offset store's matter)."""

    def cancel_timers(self) -> None:
        """Called when the group is deleted or replaced: no timer of the group may fire any more."""

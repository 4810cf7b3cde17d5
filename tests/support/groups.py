"""Members of classic groups, one raw connection each, and the small steps that the group tests are made of."""

import struct
from typing import Any

from kio.schema.errors import ErrorCode as E

from support.cluster import Cluster, find_coordinator


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """The consumer protocol's subscription, version 0: what a consumer sends as metadata of an assignor."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user_data)) + user_data


META = subscription("some-topic")
DEFAULT_PROTOCOLS = (("range", META),)


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: tuple[tuple[str, bytes], ...] = DEFAULT_PROTOCOLS,
    protocol_type: str = "consumer",
    session_timeout: int = 30000,
    rebalance_timeout: int = 30000,
) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": session_timeout,
        "rebalance_timeout": rebalance_timeout,
        "member_id": member_id,
        "group_instance_id": instance,
        "protocol_type": protocol_type,
        "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols],
    }


class Member:
    """One member of a classic group with a connection of its own."""

    def __init__(self, cluster: Cluster, group: str, *, instance: str | None = None, **options: Any) -> None:
        self.raw = cluster.connect(client_id=f"client-of-{group}")
        self.group = group
        self.instance = instance
        self.options = options
        self.member_id = ""
        self.generation = -1
        self.leader = ""
        self.protocol: str | None = None
        self.members: list[str] = []
        find_coordinator(self.raw, 0, group)

    def __enter__(self) -> "Member":
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    @property
    def is_leader(self) -> bool:
        return self.leader == self.member_id

    def send_join(self, **changes: Any) -> None:
        options = {**self.options, **changes}
        self.raw.send("join_group", 9, **join_request(self.group, self.member_id, instance=self.instance, **options))

    def receive_join(self) -> Any:
        answer = self.raw.receive()
        if answer.error_code == E.none:
            self.member_id, self.generation, self.leader = answer.member_id, answer.generation_id, answer.leader
            self.protocol = answer.protocol_name
            self.members = [member.member_id for member in answer.members]
        return answer

    def get_member_id(self) -> str:
        """The first join of a dynamic member, answered with the id to join with."""
        self.send_join()
        answer = self.raw.receive()
        assert answer.error_code == E.member_id_required, answer
        self.member_id = answer.member_id
        return self.member_id

    def join(self, **changes: Any) -> Any:
        """Joins, through MEMBER_ID_REQUIRED if need be, and waits for the answer."""
        if not self.member_id and self.instance is None:
            self.get_member_id()
        self.send_join(**changes)
        answer = self.receive_join()
        assert answer.error_code == E.none, answer
        return answer

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> None:
        parts = [{"member_id": member, "assignment": data} for member, data in (assignments or {}).items()]
        protocol = {"protocol_type": self.options.get("protocol_type", "consumer"), "protocol_name": self.protocol}
        self.raw.send("sync_group", 5, **self.identity(), **protocol, assignments=parts)

    def sync(self, assignments: dict[str, bytes] | None = None) -> Any:
        self.send_sync(assignments)
        return self.raw.receive()

    def join_alone(self, **changes: Any) -> "Member":
        """Joins as the only member and makes the group stable."""
        self.join(**changes)
        assert self.sync({self.member_id: b"everything"}).error_code == E.none
        return self

    def identity(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }

    def heartbeat(self, **changes: Any) -> E:
        error: E = self.raw.call("heartbeat", 4, **{**self.identity(), **changes}).error_code
        return error

    def leave(self) -> Any:
        identity = {"member_id": self.member_id, "group_instance_id": self.instance}
        return self.raw.call("leave_group", 5, group_id=self.group, members=[identity])

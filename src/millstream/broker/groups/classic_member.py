"""A member of a classic group: what it said in its JoinGroup request, and the assignment it got from the leader."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from millstream.wire.messages.describe_groups import DescribedGroupMember
from millstream.wire.messages.group_records import MemberMetadata
from millstream.wire.messages.join_group import JoinGroupRequestProtocol

Protocols = Sequence[JoinGroupRequestProtocol]
"""Names of assignment strategies (in the member's order of preference), each with the member's subscription."""


class ClassicMember:
    """Plain state; whether the member waits for a response is known to its group."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = list(protocols)
        self.assignment = assignment
        self.is_new = False
        """Until the first generation it takes part in: it cannot heartbeat yet, so waiting does not keep it alive."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's subscription under the protocol the group chose."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise ValueError(f"member {self.member_id} does not support protocol {protocol_name}")

    def matches(self, protocols: Protocols) -> bool:
        return self.protocols == list(protocols)

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate this member likes best."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise ValueError(f"member {self.member_id} supports none of the protocols {sorted(candidates)}")

    def renamed(self, member_id: str) -> ClassicMember:
        """The same static member after it came back under a new member id."""
        return ClassicMember(
            member_id=member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    def described(self, protocol_name: str | None) -> DescribedGroupMember:
        """As DescribeGroups shows it: the subscription only while the group has agreed on a protocol."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.metadata(protocol_name),
            member_assignment=self.assignment,
        )

    def as_record(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=assignment,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol_type: str, protocol_name: str | None) -> ClassicMember:
        """As after a restart: of its protocols only the chosen one is known until the member joins again."""
        return cls(
            member_id=record.member_id,
            group_instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=record.session_timeout if record.rebalance_timeout == -1 else record.rebalance_timeout,
            session_timeout_ms=record.session_timeout,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=protocol_name or "", metadata=record.subscription)],
            assignment=record.assignment,
        )

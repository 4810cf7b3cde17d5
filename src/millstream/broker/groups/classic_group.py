"""A classic group: members, votes, leader, generation and who waits for what. When it rebalances: `classic_rebalance`.

Invariants: `leader` is a member or None; `static_members` maps each group.instance.id to exactly one member; who is in
`awaiting_join` or `awaiting_sync` is a member, and each waiting reply is called exactly once, however the wait ends.

What survives a crash is the GroupMetadata record, written when a generation gets its assignment (or becomes empty): the
members, the generation and the assignments. Pending members and half-finished rebalances do not; their members find
out by the generation or UNKNOWN_MEMBER_ID and join again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from millstream.broker.coordinator_log import KeyValue
from millstream.broker.groups import records
from millstream.broker.groups.classic_member import ClassicMember, Protocols
from millstream.broker.groups.classic_states import TRANSITIONS, ClassicState
from millstream.broker.groups.group import CLASSIC, CONSUMER_PROTOCOL_TYPE, PartitionValidator
from millstream.broker.timer import TimerHandle
from millstream.wire.codec import MalformedMessage, decode_prefix
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from millstream.wire.messages.group_records import GroupMetadataKey, GroupMetadataValue
from millstream.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from millstream.wire.messages.sync_group import SyncGroupResponse

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]
_ACTIVE = (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE)


class ClassicGroup:
    """Implements `Group`."""

    group_type = CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_timestamp_ms = now_ms
        """When the state was entered; -1 if it came from a record that did not say."""
        self.protocol_type_or_none: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        """Given a member id (KIP-394) but not joined with it yet."""
        self.pending_sync: set[str] = set()
        self.awaiting_join: dict[str, JoinReply] = {}
        self.awaiting_sync: dict[str, SyncReply] = {}
        self.subscribed_topics: frozenset[str] | None = None
        """None while it cannot be known: not a consumer's group, no protocol yet, or a subscription we cannot read."""
        self.new_member_added = False
        """A member came during the initial rebalance delay, which therefore starts again."""
        self.session_timers: dict[str, TimerHandle] = {}
        self.join_timer: TimerHandle | None = None
        self.sync_timer: TimerHandle | None = None
        self._votes: Counter[str] = Counter()

    # --- the Group interface ---------------------------------------------------------------------------------------

    @property
    def protocol_type(self) -> str:
        return self.protocol_type_or_none or ""

    @property
    def member_count(self) -> int:
        return len(self.members)

    def state_name(self) -> str:
        return self.state.value

    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_member_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionValidator | None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_or_member_epoch < 0 and self.is_empty():
            return None  # an admin client, or a consumer that assigns its partitions itself
        if generation_or_member_epoch >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            if generation_or_member_epoch != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")

    def validate_offset_delete(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")
        if self.state in _ACTIVE and self.protocol_type_or_none != CONSUMER_PROTOCOL_TYPE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.protocol_type_or_none == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def validate_delete(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")
        if self.state in _ACTIVE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        if self.protocol_type_or_none is None:
            return commit_timestamp_ms  # a simple consumer's: only its commits show that it lives
        if self.is_empty():
            return commit_timestamp_ms if self.state_timestamp_ms == -1 else self.state_timestamp_ms
        if (
            self.state is ClassicState.STABLE
            and self.protocol_type_or_none == CONSUMER_PROTOCOL_TYPE
            and self.subscribed_topics is not None
        ):
            return commit_timestamp_ms
        return None

    def tombstones(self) -> list[KeyValue]:
        return [records.tombstone(GroupMetadataKey(group=self.group_id))]

    def cancel_timers(self) -> None:
        for timer in self.session_timers.values():
            timer.cancel()
        self.session_timers.clear()
        self.cancel_join_timer()
        self.cancel_sync_timer()

    # --- timers ----------------------------------------------------------------------------------------------------

    def cancel_join_timer(self) -> None:
        if self.join_timer is not None:
            self.join_timer.cancel()
            self.join_timer = None

    def cancel_sync_timer(self) -> None:
        if self.sync_timer is not None:
            self.sync_timer.cancel()
            self.sync_timer = None

    def cancel_session_timer(self, member_id: str) -> None:
        timer = self.session_timers.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    # --- members ---------------------------------------------------------------------------------------------------

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        """UNKNOWN_MEMBER_ID if it is no member, FENCED_INSTANCE_ID if another has taken its group.instance.id."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols could be in the group together with those who are."""
        if self.is_empty():
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type_or_none == protocol_type and any(
            self._votes[protocol.name] == len(self.members) for protocol in protocols
        )

    def add(self, member: ClassicMember, reply: JoinReply | None = None) -> None:
        if not self.members:
            self.protocol_type_or_none = member.protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        if reply is not None:
            self.awaiting_join[member.member_id] = reply
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Takes a member (or pending member) out; if it waits for a response, the error is its answer."""
        self.cancel_session_timer(member_id)
        member = self.members.get(member_id)
        if member is not None:
            # Error responses of a removed member carry no member id: it has to join as a new one.
            self.reply_join(member_id, JoinGroupResponse(error_code=error))
            self.reply_sync(member_id, SyncGroupResponse(error_code=error))
            del self.members[member_id]
            self._count(member, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count(member, -1)
        member.protocols = list(protocols)
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static_member(self, old_member_id: str, new_member_id: str) -> ClassicMember:
        """A static member is back under a new member id; whoever still waits under the old one is fenced."""
        old = self.members[old_member_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.reply_join(
            old_member_id, JoinGroupResponse(error_code=fenced, member_id=old_member_id, protocol_name=None)
        )
        self.reply_sync(old_member_id, SyncGroupResponse(error_code=fenced))
        self.cancel_session_timer(old_member_id)
        new = old.renamed(new_member_id)
        del self.members[old_member_id]
        self.members[new_member_id] = new
        if self.leader == old_member_id:
            self.leader = new_member_id
        if old_member_id in self.pending_sync:
            self.pending_sync.remove(old_member_id)
            self.pending_sync.add(new_member_id)
        if new.group_instance_id is not None:
            self.static_members[new.group_instance_id] = new_member_id
        return new

    def _count(self, member: ClassicMember, by: int) -> None:
        for name in {protocol.name for protocol in member.protocols}:
            self._votes[name] += by
            if not self._votes[name]:
                del self._votes[name]

    # --- waiting requests ------------------------------------------------------------------------------------------

    def await_join(self, member_id: str, reply: JoinReply) -> None:
        """The member's earlier JoinGroup, if one still waits, is answered so that it does not wait for ever."""
        self.reply_join(member_id, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member_id))
        self.awaiting_join[member_id] = reply

    def await_sync(self, member_id: str, reply: SyncReply) -> None:
        self.reply_sync(member_id, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        self.awaiting_sync[member_id] = reply

    def reply_join(self, member_id: str, response: JoinGroupResponse) -> bool:
        reply = self.awaiting_join.pop(member_id, None)
        if reply is None:
            return False
        reply(response)
        return True

    def reply_sync(self, member_id: str, response: SyncGroupResponse) -> bool:
        reply = self.awaiting_sync.pop(member_id, None)
        if reply is None:
            return False
        reply(response)
        return True

    def has_satisfied_heartbeat(self, member: ClassicMember) -> bool:
        """A member that waits for our response is alive; only a new one may be given up while it waits."""
        waits = member.member_id in self.awaiting_join or member.member_id in self.awaiting_sync
        return waits and not member.is_new

    # --- rebalance -------------------------------------------------------------------------------------------------

    def can_rebalance(self) -> bool:
        return ClassicState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    def all_members_joined(self) -> bool:
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it has rejoined, else takes the first who has. False if there is nobody to take."""
        if self.leader is None:
            return False
        if self.leader not in self.awaiting_join:
            joined = next((member_id for member_id in self.members if member_id in self.awaiting_join), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def select_protocol(self) -> str:
        """Of the protocols that all members support, the one that most of them like best."""
        candidates = {name for name, count in self._votes.items() if count == len(self.members)}
        ballot = Counter(member.vote(candidates) for member in self.members.values())
        return ballot.most_common(1)[0][0]

    def init_next_generation(self, now_ms: int) -> None:
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.pending_sync.clear()

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """All topics the members subscribe to, from the part of the subscription that all its versions share (v0)."""
        if self.protocol_type_or_none != CONSUMER_PROTOCOL_TYPE:
            return None
        if self.members and self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                subscription, _ = decode_prefix(
                    ConsumerProtocolSubscription, member.metadata(self.protocol_name), 0, position=2
                )
            except MalformedMessage:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    def joined_response(self, member_id: str) -> JoinGroupResponse:
        """The present generation; the leader is told about the members as well."""
        members = self.members.values() if member_id == self.leader else ()
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type_or_none,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            member_id=member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    metadata=member.metadata(self.protocol_name),
                )
                for member in members
            ],
        )

    # --- persistence -----------------------------------------------------------------------------------------------

    def record(self, assignments: Mapping[str, bytes]) -> KeyValue:
        """The group with its present generation and the given assignments."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp_ms,
            members=[
                member.as_record(self.protocol_name, assignments[member.member_id]) for member in self.members.values()
            ],
        )
        return records.encode_record(GroupMetadataKey(group=self.group_id), value, records.GROUP_METADATA_VALUE_VERSION)

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id, value.current_state_timestamp)
        group.generation_id = value.generation
        group.protocol_type_or_none = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader = value.leader
        for member in value.members:
            group.add(ClassicMember.from_record(member, value.protocol_type, value.protocol))
        if value.members:
            group.state = ClassicState.STABLE
        group.subscribed_topics = group.compute_subscribed_topics()
        return group

"""Random lives of a classic group: members join, sync, beat, leave, die and come back, time passes, the log fails, the
server crashes. The books are in order at every step, everybody who waits is answered, and in the end the group rests.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.broker.groups.classic_group import ClassicGroup
from millstream.broker.groups.classic_states import ClassicState
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.join_group import JoinGroupResponse
from millstream.wire.messages.sync_group import SyncGroupResponse
from support.group_coordinator import Groups, Waiting, subscription

CLIENTS = 4
OPERATIONS = ("join", "sync", "beat", "leave", "die", "resubscribe")
_clients = st.integers(0, CLIENTS - 1)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("live"), _clients),
        st.tuples(st.just("live"), _clients),
        st.tuples(st.just("live"), _clients),
        st.tuples(st.just("wait"), st.sampled_from((100, 3_000, 3_000, 6_000, 9_000, 11_000, 61_000))),
        st.tuples(st.sampled_from(OPERATIONS), _clients),
        st.tuples(st.sampled_from(("crash", "fail", "work")), st.just(0)),
    ),
    min_size=10,
    max_size=60,
)


class Client:
    """A consumer as the protocol knows it; the first two are static members."""

    def __init__(self, number: int) -> None:
        self.name = f"c{number}"
        self.instance = self.name if number < 2 else None
        self.topic = "t"
        self.member = ""
        self.joining: Waiting[JoinGroupResponse] | None = None
        self.joined: JoinGroupResponse | None = None
        self.syncing: Waiting[SyncGroupResponse] | None = None

    def forget(self) -> None:
        """As a process that starts anew."""
        self.member = ""
        self.joining = self.joined = self.syncing = None

    @property
    def is_stable(self) -> bool:
        answered = self.syncing is not None and not self.syncing.waits
        return answered and self.syncing is not None and self.syncing.response.error_code == ErrorCode.NONE


class World:
    def __init__(self) -> None:
        self.groups = Groups()
        self.clients = [Client(number) for number in range(CLIENTS)]
        self.waits: list[Waiting[JoinGroupResponse] | Waiting[SyncGroupResponse]] = []

    def run(self, operation: str, argument: int) -> None:
        if operation == "wait":
            self.groups.timer.advance(argument)
        elif operation == "crash":
            self.groups = self.groups.restarted()
            self.waits.clear()
            for client in self.clients:
                client.joining = client.syncing = None  # the connection broke; what it was told before still holds
        elif operation in ("fail", "work"):
            self.groups.log.fail_with(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) if operation == "fail" else None)
        else:
            getattr(self, operation)(self.clients[argument])

    def join(self, client: Client) -> None:
        client.joined = client.syncing = None
        client.joining = self.groups.join(
            client=client.name,
            member=client.member,
            instance=client.instance,
            protocols={"range": subscription(client.topic)},
        )
        self.waits.append(client.joining)

    def hear(self, client: Client) -> None:
        """Takes note of the answer to JoinGroup."""
        if client.joining is None or client.joining.waits:
            return
        response, client.joining = client.joining.response, None
        if response.error_code == ErrorCode.NONE:
            client.joined, client.member = response, response.member_id
        elif response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()

    def sync(self, client: Client) -> None:
        self.hear(client)
        if client.joined is not None:
            # By name, since a static member inherits the assignment under a new member id.
            assignments = {m.member_id: m.member_id.partition("-")[0].encode() for m in client.joined.members}
            client.syncing = self.groups.sync(client.joined, assignments, instance=client.instance)
            self.waits.append(client.syncing)

    def beat(self, client: Client) -> ErrorCode:
        self.hear(client)
        if client.joined is None:
            return ErrorCode.NONE
        return self.groups.heartbeat(client.joined, instance=client.instance)

    def leave(self, client: Client) -> None:
        if client.member:
            self.groups.leave((client.member, client.instance))
        client.forget()

    def die(self, client: Client) -> None:
        client.forget()

    def resubscribe(self, client: Client) -> None:
        client.topic = "u" if client.topic == "t" else "t"
        if client.joined is not None:
            self.join(client)

    def live(self, client: Client) -> None:
        """What a consumer does next."""
        self.hear(client)
        if client.joining is None and client.joined is None:
            self.join(client)
        elif client.joined is not None and client.syncing is None:
            self.sync(client)
        elif client.syncing is not None and not client.syncing.waits:
            error = client.syncing.response.error_code or self.beat(client)
            if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.forget()
            elif error != ErrorCode.NONE:
                self.join(client)

    def settle(self) -> None:
        """All clients live on, until the time-outs of everything that went before have passed."""
        self.groups.log.fail_with(None)
        for _ in range(100):
            for client in self.clients:
                self.live(client)
            self.groups.timer.advance(3_000)

    def check(self) -> None:
        for group in self.groups.coordinator._runtime.groups.values():
            assert isinstance(group, ClassicGroup)
            check_books(group)


def check_books(group: ClassicGroup) -> None:
    members = group.members.keys()
    assert group.leader is None or group.leader in members
    assert (group.leader is None) == (not members)
    assert set(group.static_members.values()) == {
        member.member_id for member in group.members.values() if member.group_instance_id is not None
    }
    assert group.awaiting_join.keys() <= members
    assert group.awaiting_sync.keys() <= members
    assert group.pending_sync <= members
    assert group.pending_members.isdisjoint(members)
    # Who does not wait for us has a clock that runs.
    waiting = group.awaiting_join.keys() | group.awaiting_sync.keys()
    assert group.session_timers.keys() >= (members | group.pending_members) - waiting
    assert (group.state is ClassicState.EMPTY) == (not members) or group.state is ClassicState.PREPARING_REBALANCE
    assert not group.awaiting_join or group.state is ClassicState.PREPARING_REBALANCE
    assert not group.awaiting_sync or group.state is ClassicState.COMPLETING_REBALANCE
    assert (group.join_timer is not None) == (group.state is ClassicState.PREPARING_REBALANCE)
    assert (group.sync_timer is not None) == bool(group.pending_sync)
    if group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        assert group.protocol_name == "range"
        assert group.subscribed_topics is not None


@settings(deadline=None, max_examples=200)
@given(_steps)
def test_a_random_life(steps: list[tuple[str, int]]) -> None:
    world = World()
    for operation, argument in steps:
        world.run(operation, argument)
        world.check()
    world.settle()
    world.check()
    assert all(client.is_stable for client in world.clients)
    described = world.groups.describe()
    assert described.group_state == "Stable"
    assert {member.member_id for member in described.members} == {client.member for client in world.clients}
    for client in world.clients:
        assert client.syncing is not None
        assert client.syncing.response.assignment == client.name.encode()
    assert world.groups.restarted(compacted=True).describe() == described
    world.groups.coordinator.close()
    assert not any(waiting.waits for waiting in world.waits)
    assert world.groups.timer.pending() == 0

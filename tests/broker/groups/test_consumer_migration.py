"""Groups that change their kind: empty ones, and with members while they carry on, in both directions."""

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from millstream.broker.context import RequestContext
from millstream.broker.groups.consumer_embedded_protocol import read_assignment
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.wire.codec import encode
from millstream.wire.errors import ErrorCode
from millstream.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from millstream.wire.messages.heartbeat import HeartbeatRequest
from millstream.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from millstream.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from support.consumer_group import Member, Partition, World
from support.group_coordinator import Waiting, error_of

E = ErrorCode


def by_topic(partitions: set[Partition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return topics


def assignment_bytes(partitions: set[Partition], user_data: bytes | None = None) -> bytes:
    topics = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in by_topic(partitions).items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
    return struct.pack(">h", 1) + encode(message, 1)


class ClassicConsumer:
    """A cooperative consumer of the classic protocol: it rejoins when it is told to, and says what it owns."""

    def __init__(self, world: World, *topics: str, instance_id: str | None = None) -> None:
        self.world = world
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: set[Partition] = set()

    def send_join(self, **changes: Any) -> Waiting[JoinGroupResponse]:
        owned = [
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(self.owned).items()
        ]
        subscription = ConsumerProtocolSubscription(topics=list(self.topics), owned_partitions=owned)
        metadata = struct.pack(">h", 1) + encode(subscription, 1)
        fields: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 20_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="cooperative-sticky", metadata=metadata)],
        }
        waiting: Waiting[JoinGroupResponse] = Waiting()
        context = RequestContext(api_version=9, client_id="classic")
        self.world.coordinator.join_group(JoinGroupRequest(**{**fields, **changes}), context, waiting.reply)
        if not waiting.waits and waiting.response.error_code == E.MEMBER_ID_REQUIRED:
            self.member_id = waiting.response.member_id
            return self.send_join(**changes)
        return waiting

    def joined(self, response: JoinGroupResponse) -> None:
        assert response.error_code == E.NONE
        self.member_id, self.generation = response.member_id, response.generation_id

    def send_sync(self, assignments: Sequence[tuple[str, bytes]] = ()) -> Waiting[SyncGroupResponse]:
        waiting: Waiting[SyncGroupResponse] = Waiting()
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            assignments=[SyncGroupRequestAssignment(member_id=name, assignment=data) for name, data in assignments],
        )
        self.world.coordinator.sync_group(request, waiting.reply)
        return waiting

    def synced(self, response: SyncGroupResponse) -> None:
        assert response.error_code == E.NONE
        self.owned = {
            (topic.topic, number)
            for topic in read_assignment(response.assignment).assigned_partitions
            for number in topic.partitions
        }

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g", generation_id=self.generation, member_id=self.member_id, group_instance_id=self.instance_id
        )
        return error_of(lambda: self.world.coordinator.heartbeat(request))

    def rejoin(self) -> None:
        self.joined(self.send_join().response)
        self.synced(self.send_sync().response)

    def beat(self) -> None:
        """In a consumer group nothing waits, so a rebalance is one step."""
        if self.heartbeat() is not E.NONE:
            self.rejoin()

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.world.coordinator.leave_group(LeaveGroupRequest(group_id="g", members=[identity]))


def classic_group(world: World, shares: list[set[Partition]], **options: Any) -> list[ClassicConsumer]:
    """A stable classic group whose members have these shares."""
    members = [ClassicConsumer(world, "t", **options) for _ in shares]
    joins = [member.send_join() for member in members]
    world.timer.advance(10_000)
    for member, join in zip(members, joins, strict=True):
        member.joined(join.response)
    leader = joins[0].response.leader
    assignments = [(m.member_id, assignment_bytes(share)) for m, share in zip(members, shares, strict=True)]
    syncs = [member.send_sync(assignments if member.member_id == leader else ()) for member in members]
    for member, sync in zip(members, syncs, strict=True):
        member.synced(sync.response)
    assert world.classic_group().state_name() == "Stable"
    return members


def shares(classic: list[ClassicConsumer], consumers: list[Member]) -> list[set[Partition]]:
    return [*(member.owned for member in classic), *(member.owned for member in consumers)]


def settle(world: World, classic: list[ClassicConsumer], consumers: list[Member]) -> None:
    for _ in range(10):
        world.timer.advance(1_100)
        for consumer in consumers:
            assert consumer.beat() is E.NONE
        for member in classic:
            member.beat()
        owned = [partition for share in shares(classic, consumers) for partition in share]
        assert len(owned) == len(set(owned))
    assert world.state() == "Stable"


def halves(world: World) -> list[set[Partition]]:
    return [{("t", 0), ("t", 1)}, {("t", 2), ("t", 3)}]


class TestEmptyGroups:
    def test_an_empty_classic_group_gives_way(self) -> None:
        world = World()
        for member in classic_group(world, [world.partitions("t")]):
            member.leave()
        assert world.classic_group().is_empty()
        a = world.member("a", "t")
        assert a.join() is E.NONE
        assert "-GroupMetadata" in world.record_types()
        before = world.snapshot()
        world.restart(compacted=True)
        assert world.snapshot() == before

    def test_an_empty_consumer_group_gives_way(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        a.leave()
        classic_group(world, [world.partitions("t")])
        assert "-ConsumerGroupMetadata" in world.record_types()
        world.restart(compacted=True)
        assert world.classic_group().member_count == 1


class TestUpgrade:
    def test_members_carry_on_with_what_they_have(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        generation = classic[0].generation
        a = world.member("a", "t")
        assert a.join() is E.NONE
        group = world.group()
        assert (len(group.members), a.owned) == (3, set())
        assert a.epoch == generation + 1
        assert [member.member_type for member in world.describe().members] == [0, 0, 1]
        assert classic[0].heartbeat() is E.REBALANCE_IN_PROGRESS
        settle(world, classic, [a])
        assert set().union(a.owned, *(member.owned for member in classic)) == world.partitions("t")
        assert sorted(map(len, shares(classic, [a]))) == [1, 1, 2]

    def test_a_restart_in_the_middle(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        a = world.member("a", "t")
        a.join()
        before = world.snapshot()
        world.restart(compacted=True)
        assert world.snapshot() == before
        settle(world, classic, [a])
        world.timer.advance(19_999)
        assert len(world.group().members) == 3
        world.timer.advance(1)
        # The classic members' own session time-out has passed, the other's has not.
        assert set(world.group().members) == {"a"}

    def test_who_waits_in_the_classic_group_is_told_to_rejoin(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        new = ClassicConsumer(world, "t")
        waiting = new.send_join()
        assert waiting.waits
        assert world.member("a", "t").join() is E.NONE
        assert waiting.response.error_code == E.REBALANCE_IN_PROGRESS
        assert new.member_id in world.group().members
        assert classic[0].member_id in world.group().members

    def test_members_are_replaced_one_by_one(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        settle(world, classic, [a])
        classic[0].leave()
        b.join()
        settle(world, classic[1:], [a, b])
        classic[1].leave()
        settle(world, [], [a, b])
        assert (len(a.owned), len(b.owned)) == (2, 2)

    @pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
    def test_the_policy_may_forbid_it(self, policy: str) -> None:
        world = World(group_consumer_migration_policy=policy)
        classic = classic_group(world, halves(world))
        assert world.member("a", "t").join() is E.GROUP_ID_NOT_FOUND
        assert classic[0].heartbeat() is E.NONE

    def test_a_group_that_would_be_too_large(self) -> None:
        world = World(group_consumer_max_size=1)
        classic_group(world, halves(world))
        assert world.member("a", "t").join() is E.GROUP_ID_NOT_FOUND

    def test_a_custom_assignor_with_data_of_its_own(self) -> None:
        world = World()
        (member,) = classic_group(world, [set()])
        world.classic_group().members[member.member_id].assignment = assignment_bytes(set(), b"x")
        assert world.member("a", "t").join() is E.GROUP_ID_NOT_FOUND

    def test_assignments_nobody_can_read(self) -> None:
        world = World()
        (member,) = classic_group(world, [set()])
        world.classic_group().members[member.member_id].assignment = b"\x00\x01\x00"
        assert world.member("a", "t").join() is E.GROUP_ID_NOT_FOUND
        assert world.classic_group().has_member(member.member_id)


class TestClassicMembers:
    def mixed(self, world: World, **options: Any) -> tuple[ClassicConsumer, Member]:
        """A classic member that joined a consumer group, and the consumer that was there before."""
        a = world.member("a", "t")
        a.join()
        member = ClassicConsumer(world, "t", **options)
        member.joined(member.send_join().response)
        return member, a

    def test_joining_a_consumer_group(self) -> None:
        world = World()
        member, a = self.mixed(world)
        sync = member.send_sync().response
        assert (sync.error_code, sync.protocol_name) == (E.NONE, "cooperative-sticky")
        settle(world, [member], [a])
        assert (len(member.owned), len(a.owned)) == (2, 2)

    def test_there_is_no_leader(self) -> None:
        world = World()
        world.member("a", "t").join()
        member = ClassicConsumer(world, "t")
        response = member.send_join().response
        assert (response.leader, response.members, response.protocol_name) == ("", [], "cooperative-sticky")

    def test_who_does_not_sync_is_removed(self) -> None:
        world = World()
        member, a = self.mixed(world)
        for _ in range(3):
            world.timer.advance(10_000)
            a.beat()
            if world.group().has_member(member.member_id):
                member.heartbeat()
        assert not world.group().has_member(member.member_id)

    def test_who_does_not_rejoin_is_removed(self) -> None:
        world = World()
        member, a = self.mixed(world)
        member.send_sync()
        settle(world, [member], [a])
        b = world.member("b", "t")
        b.join()
        assert member.heartbeat() is E.REBALANCE_IN_PROGRESS
        for _ in range(3):
            world.timer.advance(10_000)
            a.beat()
            b.beat()
            member.heartbeat()
        assert set(world.group().members) == {"a", "b"}

    def test_wrong_members_generations_and_protocols(self) -> None:
        world = World()
        member, _ = self.mixed(world)
        coordinator = world.coordinator
        wrong = HeartbeatRequest(group_id="g", generation_id=99, member_id=member.member_id)
        assert error_of(lambda: coordinator.heartbeat(wrong)) is E.ILLEGAL_GENERATION
        consumer = HeartbeatRequest(group_id="g", generation_id=2, member_id="a")
        assert error_of(lambda: coordinator.heartbeat(consumer)) is E.UNKNOWN_MEMBER_ID
        other = ClassicConsumer(world, "t")
        other.member_id = "x"
        assert other.send_join(protocol_type="connect").response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        assert other.send_join(protocols=protocols).response.error_code == E.INCONSISTENT_GROUP_PROTOCOL
        sync = SyncGroupRequest(
            group_id="g", generation_id=member.generation, member_id=member.member_id, protocol_name="range"
        )
        waiting: Waiting[SyncGroupResponse] = Waiting()
        coordinator.sync_group(sync, waiting.reply)
        assert waiting.response.error_code == E.INCONSISTENT_GROUP_PROTOCOL

    def test_commits_are_checked_against_the_generation(self) -> None:
        world = World()
        member, _ = self.mixed(world)

        def commit(generation: int) -> ErrorCode:
            group = world.group()
            return error_of(
                lambda: group.validate_offset_commit(
                    member.member_id, None, generation, transactional=False, api_version=8
                )
            )

        assert commit(member.generation) is E.NONE
        assert commit(member.generation + 1) is E.ILLEGAL_GENERATION

    def test_a_static_member_changes_to_the_consumer_protocol(self) -> None:
        world = World()
        member, a = self.mixed(world, instance_id="i")
        settle(world, [member], [a])
        held = set(member.owned)
        b = world.member("b", "t", instance_id="i")
        assert b.join() is E.NONE
        assert b.owned == held
        assert member.heartbeat() is E.FENCED_INSTANCE_ID


class TestDowngrade:
    def test_the_last_consumer_leaves_a_classic_group_behind(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        a = world.member("a", "t")
        a.join()
        settle(world, classic, [a])
        epoch = world.group().group_epoch
        assert a.leave() is E.NONE
        group = world.classic_group()
        assert (group.state_name(), group.generation_id, group.member_count) == ("PreparingRebalance", epoch, 2)
        joins = [member.send_join() for member in classic]
        for member, join in zip(classic, joins, strict=True):
            member.joined(join.response)
        assert classic[0].generation == epoch + 1

    def test_a_restart_afterwards(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        a = world.member("a", "t")
        a.join()
        settle(world, classic, [a])
        a.leave()
        world.restart(compacted=True)
        group = world.classic_group()
        assert set(group.members) == {member.member_id for member in classic}
        assigned = [read_assignment(member.assignment).assigned_partitions for member in group.members.values()]
        assert sum(len(topic.partitions) for topics in assigned for topic in topics) == 3

    def test_a_session_that_times_out_counts_as_well(self) -> None:
        world = World()
        classic = classic_group(world, halves(world))
        a = world.member("a", "t")
        a.join()
        settle(world, classic, [a])
        for _ in range(5):
            world.timer.advance(9_500)
            for member in classic:
                member.heartbeat()
        assert world.classic_group().member_count == 2

    def test_the_policy_may_forbid_it(self) -> None:
        world = World(group_consumer_migration_policy="upgrade")
        classic = classic_group(world, halves(world))
        a = world.member("a", "t")
        a.join()
        settle(world, classic, [a])
        a.leave()
        assert isinstance(world.group(), ConsumerGroup)
        for member in classic:
            member.rejoin()
        world.timer.advance(1_100)
        for _ in range(3):
            for member in classic:
                member.rejoin()
        assert set().union(*(member.owned for member in classic)) == world.partitions("t")

    def test_a_static_member_that_goes_back_to_the_classic_protocol(self) -> None:
        world = World()
        a = world.member("a", "t", instance_id="i")
        a.join()
        assert a.leave(-2) is E.NONE
        member = ClassicConsumer(world, "t", instance_id="i")
        member.joined(member.send_join().response)
        group = world.classic_group()
        assert (group.state_name(), set(group.members)) == ("Stable", {member.member_id})
        member.synced(member.send_sync().response)
        assert member.owned == world.partitions("t")
        assert member.heartbeat() is E.NONE


@example_settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_life_of_a_mixed_group(seed: int) -> None:
    """Members of both protocols come, go and are slow. One consumer stays, so that the group remains what it is."""
    random = Random(seed)
    world = World({"t": 5})
    classic: list[ClassicConsumer] = []
    consumers = [world.member("stays", "t")]
    consumers[0].join()
    for number in range(60):
        world.timer.advance(random.choice((0, 100, 600)))
        what = random.random()
        if what < 0.1 and len(classic) < 4:
            classic.append(ClassicConsumer(world, "t"))
            classic[-1].rejoin()
        elif what < 0.2 and len(consumers) < 4:
            consumers.append(world.member(f"m{number}", "t"))
            consumers[-1].join()
        elif what < 0.25 and classic:
            classic.pop(random.randrange(len(classic))).leave()
        elif what < 0.3 and len(consumers) > 1:
            consumers.pop(random.randrange(1, len(consumers))).leave()
        elif what < 0.35:
            before = world.snapshot()
            world.restart(compacted=random.random() < 0.5)
            assert world.snapshot() == before
        elif what < 0.65 and classic:
            random.choice(classic).beat()
        else:
            assert random.choice(consumers).beat() is E.NONE
        owned = [partition for share in shares(classic, consumers) for partition in share]
        assert len(owned) == len(set(owned))
    settle(world, classic, consumers)
    sizes = [len(share) for share in shares(classic, consumers)]
    assert sum(sizes) == 5
    assert max(sizes) - min(sizes) <= 1

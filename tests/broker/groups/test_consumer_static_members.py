"""Static members of consumer groups: leaving for a while, coming back, and who may not have an instance id."""

from typing import Any

from millstream.wire.errors import ErrorCode
from support.consumer_group import World

E = ErrorCode


class TestStaticMembers:
    def pair(self, world: World) -> Any:
        members = [world.member("a", "t", instance_id="one"), world.member("b", "t", instance_id="two")]
        for member in members:
            assert member.join() is E.NONE
        world.settle(*members)
        return members

    def test_who_comes_back_finds_its_partitions(self) -> None:
        world = World()
        a, b = self.pair(world)
        held, epoch = set(a.owned), world.group().group_epoch
        response = a.send(member_epoch=-2)
        assert (response.error_code, response.member_id, response.member_epoch) == (E.NONE, "a", -2)
        again = world.member("a2", "t", instance_id="one")
        assert again.join() is E.NONE
        assert again.owned == held
        assert set(world.group().members) == {"a2", "b"}
        assert world.group().group_epoch == epoch
        world.settle(again, b)
        assert again.owned == held

    def test_it_may_come_back_after_a_restart_of_the_server(self) -> None:
        world = World()
        a, _ = self.pair(world)
        held = set(a.owned)
        a.leave(-2)
        world.restart(compacted=True)
        again = world.member("a2", "t", instance_id="one")
        again.join()
        assert again.owned == held

    def test_who_does_not_come_back_within_the_session_is_removed(self) -> None:
        world = World()
        a, b = self.pair(world)
        a.leave(-2)
        world.timer.advance(44_000)
        b.beat()
        world.timer.advance(2_000)
        assert set(world.group().members) == {"b"}

    def test_an_instance_id_in_use_cannot_be_taken(self) -> None:
        world = World()
        self.pair(world)
        assert world.member("c", "t", instance_id="one").join() is E.UNRELEASED_INSTANCE_ID

    def test_the_owner_itself_may_repeat_its_join(self) -> None:
        world = World()
        a, _ = self.pair(world)
        held = set(a.owned)
        assert a.join() is E.NONE
        assert a.owned == held

    def test_the_former_member_id_is_fenced(self) -> None:
        world = World()
        a, _ = self.pair(world)
        epoch = a.epoch
        a.leave(-2)
        world.member("a2", "t", instance_id="one").join()
        assert a.send(member_epoch=epoch).error_code == E.FENCED_INSTANCE_ID
        assert a.send(member_epoch=-1).error_code == E.FENCED_INSTANCE_ID

    def test_an_unknown_instance_id(self) -> None:
        world = World()
        self.pair(world)
        unknown: dict[str, Any] = {"member_id": "a", "instance_id": "three"}
        assert world.send(member_epoch=3, **unknown).error_code == E.UNKNOWN_MEMBER_ID
        assert world.send(member_epoch=-2, **unknown).error_code == E.UNKNOWN_MEMBER_ID

    def test_leaving_for_good(self) -> None:
        world = World()
        a, b = self.pair(world)
        assert a.leave(-1) is E.NONE
        world.settle(b)
        assert b.owned == world.partitions("t")
        assert world.group().static_members == {"two": "b"}

    def test_a_new_subscription_on_the_way_back(self) -> None:
        world = World({"t": 4, "u": 1})
        a, b = self.pair(world)
        a.leave(-2)
        again = world.member("a2", "u", instance_id="one")
        again.join()
        world.settle(again, b)
        assert (again.owned, b.owned) == (world.partitions("u"), world.partitions("t"))

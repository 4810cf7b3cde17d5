"""What a consumer group says about offsets, and what is left of it after a restart."""

from typing import Any

import pytest

from millstream.broker.groups.consumer_states import MemberState
from millstream.wire.errors import ErrorCode
from support.consumer_group import World
from support.group_coordinator import error_of

E = ErrorCode


class TestOffsetCommit:
    """`validate_offset_commit` and its sisters: who may commit, fetch and delete offsets."""

    def commit(self, world: World, member_id: str, epoch: int, partition: int = 0, **options: Any) -> ErrorCode:
        def call() -> None:
            validate = world.group().validate_offset_commit(
                member_id, None, epoch, **{"transactional": False, "api_version": 9, **options}
            )
            if validate is not None:
                validate("t", world.topics.ids["t"], partition)

        return error_of(call)

    def test_members_and_their_epochs(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        assert self.commit(world, "a", a.epoch) is E.NONE
        assert self.commit(world, "a", a.epoch + 1) is E.STALE_MEMBER_EPOCH
        assert self.commit(world, "b", a.epoch) is E.UNKNOWN_MEMBER_ID
        assert self.commit(world, "", -1) is E.UNKNOWN_MEMBER_ID
        assert self.commit(world, "", -1, transactional=True) is E.NONE
        assert self.commit(world, "a", a.epoch, api_version=8) is E.UNSUPPORTED_VERSION

    def test_an_older_epoch_is_good_for_what_the_member_has_had_since(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        old = a.epoch
        b.join()
        world.settle(a, b)
        kept, given_away = sorted(a.owned)[0][1], sorted(b.owned)[0][1]
        assert a.epoch > old
        assert self.commit(world, "a", old, kept) is E.NONE
        assert self.commit(world, "a", old, given_away) is E.STALE_MEMBER_EPOCH
        assert self.commit(world, "b", old, given_away) is E.STALE_MEMBER_EPOCH

    def test_what_is_yet_to_be_revoked_may_still_be_committed(self) -> None:
        world = World()
        a, b = world.member("a", "t"), world.member("b", "t")
        a.join()
        world.timer.advance(1_000)
        b.join()
        a.take(a.send())
        assert all(self.commit(world, "a", a.epoch, partition) is E.NONE for partition in range(4))

    def test_an_empty_group_is_open_to_anybody(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        a.leave()
        assert self.commit(world, "", -1) is E.NONE
        assert self.commit(world, "a", 3) is E.UNKNOWN_MEMBER_ID

    def test_fetching(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        group = world.group()
        assert error_of(lambda: group.validate_offset_fetch(None, -1)) is E.NONE
        assert error_of(lambda: group.validate_offset_fetch("a", a.epoch)) is E.NONE
        assert error_of(lambda: group.validate_offset_fetch("a", a.epoch - 1)) is E.STALE_MEMBER_EPOCH
        assert error_of(lambda: group.validate_offset_fetch("b", a.epoch)) is E.UNKNOWN_MEMBER_ID

    def test_deleting(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        group = world.group()
        assert (group.is_subscribed_to("t"), group.is_subscribed_to("u")) == (True, False)
        assert error_of(group.validate_delete) is E.NON_EMPTY_GROUP
        a.leave()
        assert error_of(group.validate_delete) is E.NONE


class TestRestart:
    def busy(self) -> World:
        world = World({"t": 4, "a-1": 2})
        for member in (
            world.member("a", "t", instance_id="i"),
            world.member("b", "t", server_assignor="range", rack_id="r"),
            world.member("c", subscribed_topic_regex="a-.*"),
        ):
            member.join()
            world.timer.advance(1_100)
        a = world.group().members["a"]
        world.send(member_id="a", member_epoch=a.member_epoch, instance_id="i")
        assert world.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
        return world

    @pytest.mark.parametrize("compacted", [False, True])
    def test_everything_is_as_it_was(self, compacted: bool) -> None:
        world = self.busy()
        before = world.snapshot()
        world.restart(compacted=compacted)
        assert world.snapshot() == before

    def test_the_clocks_run_again(self) -> None:
        world = self.busy()
        world.restart()
        world.timer.advance(30_000)
        assert "a" not in world.group().members  # it did not revoke within its rebalance time-out
        world.timer.advance(15_000)
        assert world.state() == "Empty"

    def test_a_deleted_group_is_gone(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        a.leave()
        assert error_of(lambda: world.coordinator.delete_group("g")) is E.NONE
        world.restart()
        assert not world.has_group()
        assert world.record_types()[-1] == "-ConsumerGroupMetadata"

"""What consumer groups are subscribed to: topics that come, grow and go, changed subscriptions, regular expressions."""

from typing import Any

from millstream.wire.errors import ErrorCode
from support.consumer_group import World

E = ErrorCode


class TestTopics:
    def test_more_partitions(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        world.create_topic("t", 6)
        world.settle(a)
        assert a.owned == world.partitions("t")
        assert len(a.owned) == 6

    def test_a_topic_that_comes_later(self) -> None:
        world = World({})
        a = world.member("a", "later")
        a.join()
        assert a.owned == set()
        world.create_topic("later", 2)
        world.settle(a)
        assert a.owned == world.partitions("later")

    def test_a_topic_that_goes(self) -> None:
        world = World({"t": 2, "u": 2})
        a = world.member("a", "t", "u")
        a.join()
        world.delete_topic("u")
        world.settle(a)
        assert a.owned == world.partitions("t")

    def test_a_topic_that_is_created_anew_is_another_topic(self) -> None:
        world = World({"t": 2})
        a = world.member("a", "t")
        a.join()
        world.delete_topic("t")
        world.create_topic("t", 2)
        world.settle(a)
        assert [topic.topic_id for topic in a.owned_fields()] == [world.topics.ids["t"]]

    def test_topics_of_others_do_not_disturb(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        epoch = world.group().group_epoch
        world.create_topic("other", 3)
        world.settle(a)
        assert world.group().group_epoch == epoch

    def test_topics_that_changed_while_the_server_was_down(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        world.topics.counts["t"] = 5
        world.restart()
        world.settle(a)
        assert a.owned == world.partitions("t")

    def test_a_subscription_that_changes(self) -> None:
        world = World({"t": 2, "u": 2})
        a = world.member("a", "t")
        a.join()
        world.timer.advance(1_000)
        a.take(a.send(subscribed_topic_names=["u"]))
        assert a.response.member_epoch == 2  # still at the old epoch: it must revoke first
        world.settle(a)
        assert a.owned == world.partitions("u")
        assert not world.group().is_subscribed_to("t")

    def test_what_is_no_longer_subscribed_is_revoked_even_before_there_is_a_new_assignment(self) -> None:
        world = World({"t": 2, "u": 2})
        a = world.member("a", "t", "u")
        a.join()
        response = a.send(subscribed_topic_names=["u"])
        assert world.state() == "Assigning"
        assert response.assignment is not None
        assert [topic.topic_id for topic in response.assignment.topic_partitions] == [world.topics.ids["u"]]


class TestRegularExpressions:
    def regex(self, world: World, expression: str, name: str = "a", **options: Any) -> Any:
        return world.member(name, subscribed_topic_regex=expression, **options)

    def test_topics_are_assigned_with_the_first_response(self) -> None:
        world = World({"a-1": 1, "a-2": 2, "b-1": 1, "xa-1": 1})
        a = self.regex(world, "a-.*")
        assert a.join() is E.NONE
        assert a.owned == world.partitions("a-1", "a-2")
        assert world.group().resolved["a-.*"].topics == {"a-1", "a-2"}
        assert world.describe().members[0].subscribed_topic_regex == "a-.*"

    def test_topics_that_come_and_go(self) -> None:
        world = World({"a-1": 1})
        a = self.regex(world, "a-.*")
        a.join()
        world.create_topic("a-2", 2)
        world.settle(a)
        assert a.owned == world.partitions("a-1", "a-2")
        world.delete_topic("a-1")
        world.settle(a)
        assert a.owned == world.partitions("a-2")

    def test_names_and_expression_together(self) -> None:
        world = World({"a-1": 1, "t": 1})
        a = world.member("a", "t", subscribed_topic_regex="a-.*")
        a.join()
        assert a.owned == world.partitions("a-1", "t")

    def test_two_expressions(self) -> None:
        world = World({"a": 1, "b": 1, "ab": 2})
        members = [self.regex(world, "a.*", "x"), self.regex(world, ".*b", "y")]
        for member in members:
            member.join()
        world.settle(*members)
        assert members[0].owned | members[1].owned == world.partitions("a", "b", "ab")
        assert [len(member.owned) for member in members] == [2, 2]

    def test_an_expression_nobody_uses_any_more_is_deleted(self) -> None:
        world = World({"a": 1, "b": 1})
        a, b = self.regex(world, "a", "x"), self.regex(world, "a", "y")
        a.join()
        b.join()
        a.take(a.send(subscribed_topic_regex="b"))
        assert set(world.group().resolved) == {"a", "b"}
        b.leave()
        assert set(world.group().resolved) == {"b"}
        world.settle(a)
        assert a.owned == world.partitions("b")
        a.take(a.send(subscribed_topic_regex="", subscribed_topic_names=["a"]))
        world.settle(a)
        assert a.owned == world.partitions("a")
        assert world.group().resolved == {}

    def test_a_bad_expression_of_a_member_changes_nothing(self) -> None:
        world = World()
        a = world.member("a", "t")
        a.join()
        before = world.snapshot()
        response = a.send(subscribed_topic_regex="[")
        assert response.error_code == E.INVALID_REGULAR_EXPRESSION
        assert "[" in (response.error_message or "")
        assert world.snapshot() == before

    def test_it_is_looked_at_again_after_the_refresh_interval(self) -> None:
        world = World({"a-1": 1}, group_consumer_regex_refresh_interval_ms=20_000)
        a = self.regex(world, "a-.*")
        a.join()
        world.topics.create("a-2", 1)  # nobody was told
        world.timer.advance(20_001)
        world.settle(a)
        assert a.owned == world.partitions("a-1", "a-2")

"""Random lives of consumer groups with honest members: joins, leaves, crashes, lost responses, new topics, restarts.

At every step no partition has two owners, neither among the members nor in the coordinator's books, and a restart
changes nothing. When the members are left in peace the group becomes stable, complete and (uniform) balanced.
"""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.errors import ErrorCode
from support.consumer_group import Member, World

TOPICS = ("a1", "a2", "b1", "b2")
REGEXES = ("a.*", "[ab]1", "b\\d", ".*", "c.*")


class Life:
    """One random history."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.assignor = self.random.choice(("uniform", "range", None))
        self.with_regexes = self.random.random() < 0.5
        self.uniform_subscription = self.random.random() < 0.5
        self.world = World(
            {"a1": 3, "b1": 4}, settings={"consumer.assignment.interval.ms": self.random.choice((0, 1000))}
        )
        self.members: list[Member] = []
        self.away: list[Member] = []
        self.made = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(
                (self.join, self.leave, self.crash, self.change_topics, self.resubscribe, self.restart, self.come_back)
                + (self.beat,) * 12
            )()
            self.check()
        self.settle()

    # --- what may happen -------------------------------------------------------------------------------------------

    def subscription(self) -> tuple[list[str] | None, str | None]:
        if self.uniform_subscription:
            return ["a1", "b1"], None
        topics = self.random.sample(TOPICS, self.random.randint(0, 3))
        if not self.with_regexes or self.random.random() < 0.5:
            return topics, ""
        return (topics if self.random.random() < 0.3 else []), self.random.choice(REGEXES)

    def join(self) -> None:
        if len(self.members) + len(self.away) >= 6:
            return
        self.made += 1
        topics, regex = self.subscription()
        options: dict[str, Any] = {
            "server_assignor": self.assignor,
            "subscribed_topic_regex": regex,
            "rebalance_timeout_ms": 300_000,
        }
        if self.random.random() < 0.3:
            options["instance_id"] = f"i{self.made}"
        member = self.world.member(f"m{self.made}", **options)
        member.topics = topics
        assert member.join() == ErrorCode.NONE
        self.members.append(member)

    def leave(self) -> None:
        if self.members:
            member = self.members.pop(self.random.randrange(len(self.members)))
            if member.epoch == 0:
                return
            if member.instance_id is not None and self.random.random() < 0.7:
                assert member.leave(-2) == ErrorCode.NONE
                self.away.append(member)
            else:
                assert member.leave() == ErrorCode.NONE

    def crash(self) -> None:
        """It stops at once; the coordinator learns of it by the session time-out."""
        if self.members and self.random.random() < 0.5:
            gone = self.members.pop(self.random.randrange(len(self.members)))
            gone.owned, gone.assignment = set(), None

    def come_back(self) -> None:
        """A static member with a new member id takes the place of its former self."""
        if self.away:
            member = self.away.pop()
            self.made += 1
            member.member_id = f"m{self.made}"
            assert member.join() in (ErrorCode.NONE, ErrorCode.UNRELEASED_INSTANCE_ID)
            self.members.append(member)

    def beat(self) -> None:
        """Time passes and one member heartbeats; it may be slow to act, and the response may be lost."""
        self.advance(self.random.choice((0, 10, 500, 1_500)))
        if not self.members:
            return
        member = self.random.choice(self.members)
        if member.epoch == 0:
            member.join()
        elif self.random.random() < 0.2:
            member.send(**member.full_request())  # the response is lost
            member.full_next = True
        else:
            member.beat()

    def resubscribe(self) -> None:
        if self.members and not self.uniform_subscription:
            member = self.random.choice(self.members)
            member.topics, member.options["subscribed_topic_regex"] = self.subscription()
            if member.epoch != 0:
                member.beat(
                    subscribed_topic_names=member.topics,
                    subscribed_topic_regex=member.options["subscribed_topic_regex"],
                )

    def change_topics(self) -> None:
        name = self.random.choice(TOPICS)
        count = self.world.topics.counts.get(name)
        if count is None:
            self.world.create_topic(name, self.random.randint(1, 5))
        elif self.random.random() < 0.4:
            self.world.delete_topic(name)
            for member in self.members:
                member.owned = {partition for partition in member.owned if partition[0] != name}
                if member.assignment is not None:
                    member.assignment = {partition for partition in member.assignment if partition[0] != name}
        else:
            self.world.create_topic(name, min(count + 1, 8))

    def restart(self) -> None:
        before = self.world.snapshot()
        self.world.restart(compacted=self.random.random() < 0.5)
        assert self.world.snapshot() == before

    def advance(self, delay_ms: int) -> None:
        """Nobody but those who crashed misses its session: a member is heard before 40 seconds are over."""
        for member in self.members:
            if self.world.timer.now_ms() + delay_ms - member.last_sent_ms > 40_000:
                member.beat()
        self.world.timer.advance(delay_ms)

    # --- what must hold --------------------------------------------------------------------------------------------

    def check(self) -> None:
        owners: dict[tuple[str, int], str] = {}
        for member in self.members:
            for partition in member.owned:
                assert partition not in owners, f"{partition} belongs to {owners[partition]} and {member.member_id}"
                owners[partition] = member.member_id
        if not self.world.has_group():
            return
        books: set[tuple[bytes, int]] = set()
        for each in self.world.group().members.values():
            for entry in each.responsible_for():
                assert entry not in books
                books.add(entry)

    def settle(self) -> None:
        # Whoever crashed is noticed; the others heartbeat in the meantime.
        for _ in range(12):
            self.world.timer.advance(5_000)
            for member in self.members:
                if member.epoch == 0:
                    member.join()
                else:
                    member.beat()
            self.check()
        if not self.world.has_group() or not self.members:
            return
        self.world.settle(*self.members)
        self.check()
        group = self.world.group()
        assert set(group.members) == {member.member_id for member in self.members}
        wanted = {
            (topic, number)
            for topic in group.subscribed_topics()
            for number in range(self.world.topics.counts.get(topic, 0))
        }
        assert set().union(*(member.owned for member in self.members)) == wanted
        assert sum(len(member.owned) for member in self.members) == len(wanted)
        if self.uniform_subscription and self.assignor != "range":
            sizes = [len(member.owned) for member in self.members]
            assert max(sizes) - min(sizes) <= 1
        before = self.world.snapshot()
        self.world.restart(compacted=True)
        assert self.world.snapshot() == before


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_life(seed: int) -> None:
    Life(seed).run(steps=80)

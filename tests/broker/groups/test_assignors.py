"""The server-side assignors: validity, balance, stickiness, and the promises that are `range`'s alone."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.broker.groups.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec

T, U, V = (bytes([number]) * 16 for number in (1, 2, 3))


def group(
    counts: Mapping[bytes, int],
    members: Mapping[str, frozenset[bytes]],
    last: Mapping[str, Assignment] | None = None,
    instances: Mapping[str, str] | None = None,
) -> GroupSpec:
    return GroupSpec(
        {
            member: MemberSpec(topics, (last or {}).get(member, {}), (instances or {}).get(member))
            for member, topics in members.items()
        },
        counts,
    )


def sizes(assignment: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, topics.values())) for topics in assignment.values()]


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """How many partitions have another owner now, of those that had one."""
    owner = {(t, p): m for m, topics in after.items() for t, ps in topics.items() for p in ps}
    return sum(
        owner.get((t, p), m) != m for m, topics in before.items() for t, ps in topics.items() for p in ps if m in after
    )


def check_valid(spec: GroupSpec, assignment: Mapping[str, Assignment]) -> None:
    assert assignment.keys() == spec.members.keys()
    seen: set[tuple[bytes, int]] = set()
    for member, topics in assignment.items():
        for topic, partitions in topics.items():
            assert topic in spec.members[member].subscribed_topic_ids
            assert partitions
            for partition in partitions:
                assert 0 <= partition < spec.partition_counts[topic]
                assert (topic, partition) not in seen
                seen.add((topic, partition))
    wanted = set().union(*(member.subscribed_topic_ids for member in spec.members.values())) & set(
        spec.partition_counts
    )
    assert seen == {(topic, number) for topic in wanted for number in range(spec.partition_counts[topic])}


topic_ids = st.integers(0, 5).map(lambda number: bytes([number]) * 16)
counts = st.dictionaries(topic_ids, st.integers(1, 12), max_size=6)
member_ids = st.integers(0, 9).map(lambda number: f"m{number}")
partitions = st.frozensets(st.integers(0, 13), min_size=1, max_size=8)
last_assignments = st.dictionaries(topic_ids, partitions, max_size=4)


@st.composite
def specs(draw: st.DrawFn, *, homogeneous: bool) -> GroupSpec:
    """Any group; the last assignment may be nonsense: gone topics, partitions with two owners."""
    topics = st.frozensets(topic_ids, max_size=6)
    shared = draw(topics)
    ids = draw(st.lists(member_ids, min_size=1, max_size=8, unique=True))
    return GroupSpec(
        {
            member: MemberSpec(
                shared if homogeneous else draw(topics),
                draw(last_assignments),
                f"i{member}" if draw(st.booleans()) else None,
            )
            for member in ids
        },
        draw(counts),
    )


class TestAnyGroup:
    @pytest.mark.parametrize("name", ASSIGNORS)
    @given(spec=st.one_of(specs(homogeneous=True), specs(homogeneous=False)))
    def test_each_partition_goes_to_one_subscriber(self, name: str, spec: GroupSpec) -> None:
        check_valid(spec, ASSIGNORS[name](spec))

    @pytest.mark.parametrize("name", ASSIGNORS)
    @given(spec=specs(homogeneous=False), order=st.randoms())
    def test_the_order_of_members_does_not_matter(self, name: str, spec: GroupSpec, order: Random) -> None:
        shuffled = list(spec.members.items())
        order.shuffle(shuffled)
        assert ASSIGNORS[name](spec._replace(members=dict(shuffled))) == ASSIGNORS[name](spec)

    @pytest.mark.parametrize("name", ASSIGNORS)
    @given(spec=st.one_of(specs(homogeneous=True), specs(homogeneous=False)))
    def test_a_second_time_nothing_moves(self, name: str, spec: GroupSpec) -> None:
        first = ASSIGNORS[name](spec)
        members = {member: each._replace(assignment=first[member]) for member, each in spec.members.items()}
        assert ASSIGNORS[name](spec._replace(members=members)) == first

    @pytest.mark.parametrize("name", ASSIGNORS)
    def test_no_members(self, name: str) -> None:
        assert ASSIGNORS[name](GroupSpec({}, {})) == {}


class TestUniform:
    @given(spec=specs(homogeneous=True))
    def test_equal_subscriptions_get_equal_shares(self, spec: GroupSpec) -> None:
        assigned = sizes(ASSIGNORS["uniform"](spec))
        assert max(assigned) - min(assigned) <= 1

    @given(spec=specs(homogeneous=False))
    def test_no_partition_could_go_to_a_less_loaded_subscriber(self, spec: GroupSpec) -> None:
        assignment = ASSIGNORS["uniform"](spec)
        load = dict(zip(assignment, sizes(assignment), strict=True))
        for owner, topics in assignment.items():
            for topic in topics:
                for other, member in spec.members.items():
                    if topic in member.subscribed_topic_ids:
                        assert load[owner] - load[other] <= 1

    @given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 7))
    def test_a_member_that_goes_moves_only_its_own(self, members: int, partitions: int, gone: int) -> None:
        names = [f"m{number}" for number in range(members + 1)]
        first = ASSIGNORS["uniform"](group({T: partitions}, dict.fromkeys(names, frozenset({T}))))
        names.remove(f"m{gone % (members + 1)}")
        spec = group({T: partitions}, dict.fromkeys(names, frozenset({T})), first)
        second = ASSIGNORS["uniform"](spec)
        assert moved(first, second) == 0
        check_valid(spec, second)

    @given(st.integers(1, 8), st.integers(1, 40))
    def test_a_member_that_comes_takes_only_its_share(self, members: int, partitions: int) -> None:
        names = [f"m{number}" for number in range(members)]
        first = ASSIGNORS["uniform"](group({T: partitions}, dict.fromkeys(names, frozenset({T}))))
        second = ASSIGNORS["uniform"](group({T: partitions}, dict.fromkeys([*names, "m"], frozenset({T})), first))
        assert moved(first, second) == len(second["m"].get(T, ()))
        assert len(second["m"].get(T, ())) in (partitions // (members + 1), -(-partitions // (members + 1)))

    @given(st.integers(2, 6), st.integers(1, 20), st.integers(1, 20))
    def test_new_partitions_do_not_move_old_ones_needlessly(self, members: int, before: int, more: int) -> None:
        names = dict.fromkeys([f"m{number}" for number in range(members)], frozenset({T}))
        first = ASSIGNORS["uniform"](group({T: before}, names))
        second = ASSIGNORS["uniform"](group({T: before + more}, names, first))
        assert moved(first, second) == 0

    def test_a_topic_of_one_subscriber_weighs_in(self) -> None:
        members = {"a": frozenset({T, U}), "b": frozenset({U})}
        assignment = ASSIGNORS["uniform"](group({T: 3, U: 5}, members))
        assert assignment["a"][T] == {0, 1, 2}
        assert sizes(assignment) == [4, 4]


class TestRange:
    def test_topics_are_co_partitioned(self) -> None:
        topics = frozenset({T, U})
        assignment = ASSIGNORS["range"](group({T: 5, U: 5}, dict.fromkeys(("a", "b"), topics)))
        assert assignment == {
            "a": {T: frozenset({0, 1, 2}), U: frozenset({0, 1, 2})},
            "b": {T: frozenset({3, 4}), U: frozenset({3, 4})},
        }

    def test_static_members_come_first_and_keep_their_place(self) -> None:
        topics = frozenset({T})
        members = dict.fromkeys(("a", "x", "y"), topics)
        before = ASSIGNORS["range"](group({T: 6}, members, instances={"x": "one", "y": "two"}))
        assert before["x"][T] == {0, 1}
        members = dict.fromkeys(("a", "b", "z"), topics)
        after = ASSIGNORS["range"](group({T: 6}, members, before, instances={"z": "one", "b": "two"}))
        assert (after["z"], after["b"]) == (before["x"], before["y"])

    def test_more_members_than_partitions(self) -> None:
        assignment = ASSIGNORS["range"](group({T: 1}, dict.fromkeys(("a", "b"), frozenset({T}))))
        assert assignment == {"a": {T: frozenset({0})}, "b": {}}

    def test_only_subscribers_count(self) -> None:
        members = {"a": frozenset({T}), "b": frozenset({T, U}), "c": frozenset({V})}
        assignment = ASSIGNORS["range"](group({T: 2, U: 3, V: 1}, members))
        assert assignment["a"] == {T: frozenset({0})}
        assert assignment["b"] == {T: frozenset({1}), U: frozenset({0, 1, 2})}
        assert assignment["c"] == {V: frozenset({0})}

"""Plans for moving partitions, on every small cluster that hypothesis can think of."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.placement import (
    Load,
    Move,
    Placement,
    Racks,
    balance,
    changes,
    drain,
    even_leaders,
    even_replicas,
    loads,
    place_topic,
)


@st.composite
def clusters(
    draw: st.DrawFn, *, racks: bool = False, at_least: int = 1
) -> tuple[dict[tuple[str, int], tuple[int, ...]], Racks]:
    brokers = list(range(1, draw(st.integers(at_least, 6)) + 1))
    names = st.sampled_from(["a", "b", "c"]) if racks else st.none()
    placement: dict[tuple[str, int], tuple[int, ...]] = {}
    for topic in draw(st.lists(st.sampled_from(["orders", "clicks", "__consumer_offsets"]), unique=True)):
        factor = draw(st.integers(1, len(brokers)))
        for partition in range(draw(st.integers(1, 8))):
            placement[topic, partition] = tuple(draw(st.permutations(brokers))[:factor])
    return placement, {broker: draw(names) for broker in brokers}


def spread(replicas: tuple[int, ...], racks: Racks) -> int:
    return len({racks[broker] for broker in replicas})


def copies(before: Placement, after: Placement) -> int:
    """How many replicas have to be copied to a broker."""
    return sum(len(move.adding) for move in changes(before, after))


def assert_sound(before: Placement, after: Placement, racks: Racks) -> None:
    assert after.keys() == before.keys()
    for replicas in after.values():
        assert len(set(replicas)) == len(replicas), "a broker twice"
        assert set(replicas) <= set(racks)


def replica_counts(placement: Placement, racks: Racks) -> list[int]:
    return [load.replicas for load in loads(placement, racks)]


@given(clusters())
def test_balance_keeps_factors_and_levels_replicas_with_the_fewest_copies(
    cluster: tuple[Placement, Racks],
) -> None:
    before, racks = cluster
    after = balance(before, racks)
    assert_sound(before, after, racks)
    assert all(len(after[key]) == len(before[key]) for key in before)
    counts, old = replica_counts(after, racks), replica_counts(before, racks)
    assert max(counts) - min(counts) <= 1
    floor, rest = divmod(sum(old), len(old))
    ceiling = floor + bool(rest)
    fewest = max(sum(max(0, n - ceiling) for n in old), sum(max(0, floor - n) for n in old))
    assert copies(before, after) == fewest
    assert balance(after, racks) == after, "a balanced cluster is left alone"


@given(clusters(racks=True))
def test_balance_never_costs_a_partition_a_rack(cluster: tuple[Placement, Racks]) -> None:
    before, racks = cluster
    after = balance(before, racks)
    assert_sound(before, after, racks)
    for key in before:
        assert spread(after[key], racks) >= spread(before[key], racks)
    counts, old = replica_counts(after, racks), replica_counts(before, racks)
    assert max(counts) - min(counts) <= max(old) - min(old)


@given(clusters().filter(lambda cluster: 0 < len(cluster[0]) <= 6))
def test_no_order_of_the_replicas_has_evener_leaders(cluster: tuple[Placement, Racks]) -> None:
    before, _ = cluster
    after = even_leaders(before)
    assert all(set(after[key]) == set(before[key]) for key in before)
    brokers = {broker for replicas in before.values() for broker in replicas}

    def unevenness(leaders: tuple[int, ...]) -> int:
        return sum(leaders.count(broker) ** 2 for broker in brokers)

    smallest = min(3, *(len(replicas) for replicas in before.values()))
    if len(before) * smallest <= 12:
        best = min(unevenness(choice) for choice in product(*before.values()))
        assert unevenness(tuple(replicas[0] for replicas in after.values())) == best


@given(clusters(racks=True, at_least=2), st.data())
def test_drain_moves_what_the_broker_has_and_nothing_else(
    cluster: tuple[Placement, Racks], data: st.DataObject
) -> None:
    before, racks = cluster
    leaving = data.draw(st.sampled_from(sorted(racks)))
    if any(len(replicas) == len(racks) for replicas in before.values() if leaving in replicas):
        with pytest.raises(ValueError, match="would remain"):
            drain(before, racks, leaving)
        return
    after = drain(before, racks, leaving)
    assert_sound(before, after, {broker: rack for broker, rack in racks.items() if broker != leaving})
    hosted = [key for key, replicas in before.items() if leaving in replicas]
    assert copies(before, after) == len(hosted)
    remaining = {rack for broker, rack in racks.items() if broker != leaving}
    for key in before:
        assert len(after[key]) == len(before[key])
        if key in hosted:
            others = tuple(broker for broker in before[key] if broker != leaving)
            free = {racks[broker] for broker in racks if broker != leaving and broker not in others}
            possible = min(spread(others, racks) + bool(free - {racks[b] for b in others}), len(remaining))
            assert spread(after[key], racks) == possible
        else:
            assert after[key] == before[key]


@given(clusters(racks=False, at_least=2), st.data())
def test_place_topic_uses_the_brokers_it_was_given_evenly(
    cluster: tuple[Placement, Racks], data: st.DataObject
) -> None:
    before, racks = cluster
    topic = {key: replicas for key, replicas in before.items() if key[0] == "orders"}
    targets = data.draw(st.lists(st.sampled_from(sorted(racks)), min_size=1, unique=True))
    factor = data.draw(st.integers(1, len(targets)))
    allowed = dict.fromkeys(targets)
    after = place_topic(topic, allowed, factor)
    assert_sound(topic, after, allowed)
    assert all(len(replicas) == factor for replicas in after.values())
    counts = replica_counts(after, allowed)
    assert max(counts) - min(counts) <= 1
    if topic:
        with pytest.raises(ValueError, match="brokers"):
            place_topic(topic, allowed, len(targets) + 1)


@given(clusters(racks=True, at_least=2), st.data())
def test_place_topic_fills_new_racks_first(cluster: tuple[Placement, Racks], data: st.DataObject) -> None:
    before, racks = cluster
    topic = {key: replicas[:1] for key, replicas in before.items()}
    factor = data.draw(st.integers(1, len(racks)))
    after = place_topic(topic, racks, factor)
    distinct = len(set(racks.values()))
    assert all(spread(replicas, racks) == min(factor, distinct) for replicas in after.values())


def test_a_replica_that_may_stay_stays() -> None:
    before = {("t", 0): (1, 2), ("t", 1): (2, 3)}
    after = place_topic(before, {1: None, 2: None, 3: None}, 3)
    assert all(set(before[key]) <= set(after[key]) for key in before)
    smaller = place_topic(before, {1: None, 2: None, 3: None}, 1)
    assert all(set(smaller[key]) <= set(before[key]) for key in before)


def test_of_equal_brokers_the_one_with_the_fewest_other_replicas_is_taken() -> None:
    after = place_topic({("t", 0): (1,)}, {1: None, 2: None, 3: None}, 2, elsewhere={1: 0, 2: 50, 3: 10})
    assert set(after["t", 0]) == {1, 3}


def test_the_smaller_of_two_equal_partitions_is_moved() -> None:
    before = {("t", 0): (1,), ("t", 1): (1,)}
    after = even_replicas(before, {1: None, 2: None}, {("t", 0): 10_000, ("t", 1): 5})
    assert after == {("t", 0): (1,), ("t", 1): (2,)}


def test_changes_and_loads_say_what_differs() -> None:
    before, after = {("t", 0): (1, 2), ("t", 1): (2, 1)}, {("t", 0): (3, 2), ("t", 1): (2, 1)}
    (move,) = changes(before, after)
    assert move == Move("t", 0, (1, 2), (3, 2))
    assert (move.adding, move.removing) == ([3], [1])
    assert loads(after, [1, 2, 3]) == [Load(1, 1, 0), Load(2, 2, 1), Load(3, 1, 1)]

"""Which broker should hold which replica: plans for moving partitions. Pure functions, no cluster is touched.

A placement maps (topic, partition) to its replicas in order; the first replica is the preferred leader. Every plan

- puts the replicas of a partition on distinct brokers,
- spreads them over as many racks as there are, where the brokers' racks are known, and never over fewer than before,
- leaves a replica where it is unless it has to go, since each move copies the partition over the network; changing only
  the order of the replicas (the preferred leader) copies nothing.

`even_replicas` moves from the fullest broker to the emptiest until they differ by one at most. That is always possible
without racks (the fuller broker has a partition that the emptier one lacks), takes the fewest moves there are, and no
replica moves twice. With racks it stops where another move would cost a partition its spread.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from typing import NamedTuple

TopicPartition = tuple[str, int]
Placement = Mapping[TopicPartition, tuple[int, ...]]
Racks = Mapping[int, str | None]
"""Every broker that may be used, with its rack."""


class Move(NamedTuple):
    """One partition's change of replicas."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def adding(self) -> list[int]:
        return [broker for broker in self.after if broker not in self.before]

    @property
    def removing(self) -> list[int]:
        return [broker for broker in self.before if broker not in self.after]


class Load(NamedTuple):
    """What one broker holds by a placement."""

    broker: int
    replicas: int
    leaders: int


def changes(before: Placement, after: Placement) -> list[Move]:
    """The partitions whose replicas or their order differ."""
    return [
        Move(topic, partition, before[topic, partition], replicas)
        for (topic, partition), replicas in sorted(after.items())
        if before[topic, partition] != replicas
    ]


def loads(placement: Placement, brokers: Collection[int]) -> list[Load]:
    """Replicas and preferred leaders of each broker."""
    replicas = _replica_counts(placement, brokers)
    leaders = _leader_counts(placement, brokers)
    return [Load(broker, replicas[broker], leaders[broker]) for broker in sorted(brokers)]


def place_topic(
    placement: Placement, racks: Racks, factor: int | None = None, elsewhere: Mapping[int, int] | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions of `placement` on the brokers of `racks` alone, with `factor` replicas, evenly.

    `elsewhere` says how many replicas of other topics each broker has: of equals the emptiest is taken. ValueError if a
    partition would have more replicas than there are brokers.
    """
    others = elsewhere or {}
    counts = _replica_counts(placement, racks)
    kept: dict[TopicPartition, tuple[int, ...]] = {}
    for key, before in sorted(placement.items()):
        wanted = len(before) if factor is None else factor
        if wanted > len(racks):
            raise ValueError(f"{wanted} replicas need {wanted} brokers, and there are {len(racks)}")
        stay = tuple(broker for broker in before if broker in racks)
        kept[key] = _resized(stay, wanted, counts, racks, others)
    return even_leaders(even_replicas(kept, racks))


def drain(placement: Placement, racks: Racks, leaving: int) -> dict[TopicPartition, tuple[int, ...]]:
    """Everything off the broker `leaving`, nothing else moved. ValueError if that leaves too few brokers."""
    remaining = {broker: rack for broker, rack in racks.items() if broker != leaving}
    counts = _replica_counts(placement, remaining)
    result = dict(placement)
    affected = sorted(key for key, replicas in placement.items() if leaving in replicas)
    heirs: dict[TopicPartition, int] = {}
    for key in affected:
        if len(placement[key]) > len(remaining):
            raise ValueError(f"{key[0]} has {len(placement[key])} replicas, and {len(remaining)} brokers would remain")
        heirs[key] = _best_addition(_without(placement[key], leaving), counts, remaining)
        counts[heirs[key]] += 1
    _even_heirs(placement, heirs, counts, remaining, leaving)
    leaders = _leader_counts(placement, remaining)
    for key in affected:
        after = _swapped(placement[key], leaving, heirs[key])
        if placement[key][0] == leaving:
            first = min(after, key=lambda broker: leaders[broker])
            after = _led_by(first, after)
            leaders[first] += 1
        result[key] = after
    return result


def _even_heirs(
    placement: Placement, heirs: dict[TopicPartition, int], counts: Counter[int], racks: Racks, leaving: int
) -> None:
    """What was given out first may fit an emptier broker now, and moves anyway."""
    improved = True
    while improved:
        improved = False
        for key, heir in heirs.items():
            others = _without(placement[key], leaving)
            counts[heir] -= 1
            heirs[key] = _best_addition(others, counts, racks)
            if counts[heirs[key]] == counts[heir]:
                heirs[key] = heir
            counts[heirs[key]] += 1
            improved = improved or heirs[key] != heir


def balance(
    placement: Placement, racks: Racks, sizes: Mapping[TopicPartition, int] | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """Replicas and leaders spread evenly over all brokers with few moves; of equal moves the smaller partition's."""
    return even_leaders(even_replicas(placement, racks, sizes))


def even_replicas(
    placement: Placement, racks: Racks, sizes: Mapping[TopicPartition, int] | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """The same partitions with the brokers' numbers of replicas within one of each other, if racks allow it."""
    result = dict(placement)
    replicas = _replica_counts(result, racks)
    held: dict[int, set[TopicPartition]] = {broker: set() for broker in racks}
    per_topic: Counter[tuple[str, int]] = Counter()
    for key, brokers in result.items():
        for broker in brokers:
            held.setdefault(broker, set()).add(key)
            per_topic[key[0], broker] += 1
    while True:
        found = _next_move(result, replicas, held, per_topic, racks, sizes or {})
        if found is None:
            return result
        key, source, target = found
        result[key] = _swapped(result[key], source, target)
        replicas[source] -= 1
        replicas[target] += 1
        held[source].remove(key)
        held[target].add(key)
        per_topic[key[0], source] -= 1
        per_topic[key[0], target] += 1


def _next_move(
    placement: Placement,
    replicas: Counter[int],
    held: Mapping[int, set[TopicPartition]],
    per_topic: Counter[tuple[str, int]],
    racks: Racks,
    sizes: Mapping[TopicPartition, int],
) -> tuple[TopicPartition, int, int] | None:
    """From the fullest broker to the emptiest that can take something off it, while they differ by two or more."""
    by_load = sorted(racks, key=lambda broker: (replicas[broker], broker))
    for source in reversed(by_load):
        for target in by_load:
            if replicas[source] - replicas[target] < 2:
                break
            candidates = [
                key
                for key in held[source] - held[target]
                if _spread(_swapped(placement[key], source, target), racks) >= _spread(placement[key], racks)
            ]
            if candidates:
                # The topic that is most uneven between the two; a follower rather than a leader; the smaller one.
                def cost(key: TopicPartition, source: int = source, target: int = target) -> tuple[int, bool, int]:
                    uneven = per_topic[key[0], source] - per_topic[key[0], target]
                    return -uneven, placement[key][0] == source, sizes.get(key, 0)

                return min(sorted(candidates), key=cost), source, target
    return None


def even_leaders(placement: Placement) -> dict[TopicPartition, tuple[int, ...]]:
    """The same replicas in an order that spreads the preferred leaders as evenly as the replicas allow.

    While some broker leads two more than another that can be reached by handing leaderships on, one is handed along the
    shortest way. When no such way is left, no order of the replicas is more even.
    """
    result = dict(placement)
    brokers = {broker for replicas in placement.values() for broker in replicas}
    leaders = _leader_counts(result, brokers)
    led: dict[int, set[TopicPartition]] = {broker: set() for broker in brokers}
    for key, replicas in result.items():
        led[replicas[0]].add(key)
    while (way := _handover(result, leaders, led)) is not None:
        for key, old, new in way:
            result[key] = _led_by(new, result[key])
            led[old].remove(key)
            led[new].add(key)
            leaders[old] -= 1
            leaders[new] += 1
    return result


def _handover(
    placement: Placement, leaders: Counter[int], led: Mapping[int, set[TopicPartition]]
) -> list[tuple[TopicPartition, int, int]] | None:
    """Steps (partition, its leader, the next leader) from a busy broker to one that leads at least two fewer."""
    for start in sorted(leaders, key=lambda broker: (-leaders[broker], broker)):
        came_from: dict[int, tuple[TopicPartition, int] | None] = {start: None}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            if leaders[here] <= leaders[start] - 2:
                steps = []
                while (step := came_from[here]) is not None:
                    key, previous = step
                    steps.append((key, previous, here))
                    here = previous
                return steps[::-1]
            for key in sorted(led[here]):
                for follower in placement[key][1:]:
                    if follower not in came_from:
                        came_from[follower] = (key, here)
                        queue.append(follower)
    return None


def _resized(
    replicas: tuple[int, ...], wanted: int, counts: Counter[int], racks: Racks, elsewhere: Mapping[int, int]
) -> tuple[int, ...]:
    """As many replicas as wanted: the last ones that cost no rack go, the best brokers come."""
    result = replicas
    while len(result) > wanted:
        # Not the preferred leader; rather one whose rack is there twice; rather from a full broker.
        gone = max(result[1:], key=lambda broker: (_spread(_without(result, broker), racks), counts[broker], broker))
        counts[gone] -= 1
        result = _without(result, gone)
    while len(result) < wanted:
        added = _best_addition(result, counts, racks, elsewhere)
        counts[added] += 1
        result = (*result, added)
    return result


def _best_addition(
    replicas: tuple[int, ...], counts: Counter[int], racks: Racks, elsewhere: Mapping[int, int] | None = None
) -> int:
    """A broker of a rack that is not there yet, if there is one; the emptiest of those."""
    others = elsewhere or {}
    free = [broker for broker in racks if broker not in replicas]
    return min(
        free, key=lambda broker: (-_spread((*replicas, broker), racks), counts[broker], others.get(broker, 0), broker)
    )


def _spread(replicas: tuple[int, ...], racks: Racks) -> int:
    """How many racks the replicas are in; brokers without one count as one rack together."""
    return len({racks.get(broker) for broker in replicas})


def _swapped(replicas: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if broker == old else broker for broker in replicas)


def _without(replicas: tuple[int, ...], gone: int) -> tuple[int, ...]:
    return tuple(broker for broker in replicas if broker != gone)


def _led_by(leader: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Leader and old leader change places, so that the rest keeps its order."""
    old = replicas[0]
    return tuple(leader if broker == old else old if broker == leader else broker for broker in replicas)


def _replica_counts(placement: Placement, brokers: Collection[int]) -> Counter[int]:
    counts = Counter(dict.fromkeys(brokers, 0))
    for replicas in placement.values():
        counts.update(replicas)
    return counts


def _leader_counts(placement: Placement, brokers: Collection[int]) -> Counter[int]:
    counts = Counter(dict.fromkeys(brokers, 0))
    counts.update(replicas[0] for replicas in placement.values())
    return counts

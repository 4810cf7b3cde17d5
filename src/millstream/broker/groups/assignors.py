"""The server-side assignors of the consumer protocol (KIP-848): who gets which partition.

An assignor is a pure function from a `GroupSpec` to the group's new target assignment. Whatever the input, each
existing partition of a subscribed topic goes to exactly one member that is subscribed to it, and nothing else is
handed out. The same input gives the same output: members are always taken in one order, static ones (by instance id)
before the others (by member id), so that a restarted static member finds its old place.

- `uniform` evens out the number of partitions per member and moves as few partitions as that takes. When all members
  have the same subscription the counts differ by at most one; otherwise no single partition could be moved to a less
  loaded subscriber, up to a bounded number of passes.
- `range` gives each member a run of neighbouring partitions of each topic. Topics with equal partition counts are
  co-partitioned: the same member gets the same partition numbers of each. It is sticky only through the members' order.

Unlike Apache Kafka, whose result may depend on the iteration order of hash maps, ties are broken by the members' order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id. A topic without partitions is not in it."""

EMPTY_ASSIGNMENT: Assignment = {}
_MAX_BALANCING_PASSES = 16


class MemberSpec(NamedTuple):
    """What an assignor may know about a member."""

    subscribed_topic_ids: frozenset[bytes]
    assignment: Assignment
    """The member's part of the last target assignment."""
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """What an assignor may know about a group."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    """Of each topic that exists and that some member is subscribed to."""


Assignor = Callable[[GroupSpec], dict[str, Assignment]]


def assign_range(group: GroupSpec) -> dict[str, Assignment]:
    """Neighbouring partitions of each topic to each subscriber."""
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in group.members}
    for topic_id, subscribers in _subscribers_by_topic(group).items():
        quota, extra = divmod(group.partition_counts[topic_id], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + quota + (index < extra)
            if end > start:
                assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def assign_uniform(group: GroupSpec) -> dict[str, Assignment]:
    """Equal numbers of partitions, with as few moves as possible."""
    if not group.members:
        return {}
    subscriptions = {spec.subscribed_topic_ids for spec in group.members.values()}
    return _assign_homogeneous(group) if len(subscriptions) == 1 else _assign_heterogeneous(group)


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""By their names in `group.consumer.assignors`."""


def _in_order(group: GroupSpec) -> list[str]:
    """Member ids, static members first."""

    def place(member_id: str) -> tuple[bool, str, str]:
        instance_id = group.members[member_id].instance_id
        return instance_id is None, instance_id or "", member_id

    return sorted(group.members, key=place)


def _subscribers_by_topic(group: GroupSpec) -> dict[bytes, list[str]]:
    """The subscribers of each existing topic, in the members' order."""
    subscribers: dict[bytes, list[str]] = {}
    for member_id in _in_order(group):
        for topic_id in group.members[member_id].subscribed_topic_ids:
            if topic_id in group.partition_counts:
                subscribers.setdefault(topic_id, []).append(member_id)
    return dict(sorted(subscribers.items()))


class _Draft:
    """An assignment under construction that starts from what of the last one is still valid."""

    def __init__(self, group: GroupSpec) -> None:
        self._owners: dict[bytes, list[str | None]] = {
            topic_id: [None] * group.partition_counts[topic_id]
            for topic_id in sorted(set().union(*(spec.subscribed_topic_ids for spec in group.members.values())))
            if topic_id in group.partition_counts
        }
        self.sizes = dict.fromkeys(group.members, 0)
        for member_id in _in_order(group):
            spec = group.members[member_id]
            for topic_id in spec.assignment.keys() & spec.subscribed_topic_ids & self._owners.keys():
                owners = self._owners[topic_id]
                for partition in spec.assignment[topic_id]:
                    if partition < len(owners) and owners[partition] is None:
                        self.give(topic_id, partition, member_id)

    def give(self, topic_id: bytes, partition: int, member_id: str) -> None:
        self._take(topic_id, partition)
        self._owners[topic_id][partition] = member_id
        self.sizes[member_id] += 1

    def _take(self, topic_id: bytes, partition: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner is not None:
            self._owners[topic_id][partition] = None
            self.sizes[owner] -= 1

    def trim(self, quotas: Mapping[str, int]) -> None:
        """Takes from each member what exceeds its quota, the highest partitions first."""
        for topic_id in reversed(self._owners):
            owners = self._owners[topic_id]
            for partition in range(len(owners) - 1, -1, -1):
                owner = owners[partition]
                if owner is not None and self.sizes[owner] > quotas[owner]:
                    self._take(topic_id, partition)

    def unassigned(self, topic_id: bytes) -> Iterable[int]:
        return [partition for partition, owner in enumerate(self._owners[topic_id]) if owner is None]

    def topic_ids(self) -> Iterable[bytes]:
        return self._owners.keys()

    def partitions_by_owner(self, topic_id: bytes) -> dict[str, list[int]]:
        by_owner: dict[str, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            if owner is not None:
                by_owner.setdefault(owner, []).append(partition)
        return by_owner

    def finish(self) -> dict[str, Assignment]:
        assignment: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in self.sizes}
        for topic_id in self._owners:
            for owner, partitions in self.partitions_by_owner(topic_id).items():
                assignment[owner][topic_id] = frozenset(partitions)
        return dict(assignment)


def _assign_homogeneous(group: GroupSpec) -> dict[str, Assignment]:
    draft = _Draft(group)
    member_ids = _in_order(group)
    total = sum(group.partition_counts[topic_id] for topic_id in draft.topic_ids())
    quota, extra = divmod(total, len(member_ids))
    # One partition above the quota: those who already have it first, so that they may keep it.
    by_claim = sorted(member_ids, key=lambda member_id: draft.sizes[member_id] <= quota)
    quotas = {member_id: quota + (index < extra) for index, member_id in enumerate(by_claim)}
    draft.trim(quotas)
    places = iter([member_id for member_id in member_ids for _ in range(quotas[member_id] - draft.sizes[member_id])])
    for topic_id in draft.topic_ids():
        for partition in draft.unassigned(topic_id):
            draft.give(topic_id, partition, next(places))
    return draft.finish()


def _assign_heterogeneous(group: GroupSpec) -> dict[str, Assignment]:
    draft = _Draft(group)
    subscribers = _subscribers_by_topic(group)

    def scarcity(topic_id: bytes) -> tuple[float, int, bytes]:
        """The topics that weigh most on their subscribers come first: there is least choice about them."""
        return -group.partition_counts[topic_id] / len(subscribers[topic_id]), len(subscribers[topic_id]), topic_id

    rank = {member_id: index for index, member_id in enumerate(_in_order(group))}
    topic_ids = sorted(subscribers, key=scarcity)
    for topic_id in topic_ids:
        heap = [(draft.sizes[member_id], rank[member_id], member_id) for member_id in subscribers[topic_id]]
        heapify(heap)
        for partition in draft.unassigned(topic_id):
            size, place, member_id = heappop(heap)
            draft.give(topic_id, partition, member_id)
            heappush(heap, (size + 1, place, member_id))
    for _ in range(_MAX_BALANCING_PASSES):
        # Every topic is balanced in each pass, even after one that moved nothing: loads are shared between topics.
        if not sum([_balance(draft, topic_id, subscribers[topic_id], rank) for topic_id in topic_ids]):
            break
    return draft.finish()


def _balance(draft: _Draft, topic_id: bytes, subscribers: list[str], rank: Mapping[str, int]) -> int:
    """Moves partitions of one topic from its most loaded owners to its least loaded subscribers; says how many."""
    givable = draft.partitions_by_owner(topic_id)
    least = [(draft.sizes[member_id], rank[member_id], member_id) for member_id in subscribers]
    most = [(-draft.sizes[member_id], -rank[member_id], member_id) for member_id in givable]
    heapify(least)
    heapify(most)
    moved = 0
    while most:
        # Entries whose size is out of date are dropped: a newer one of the same member is in the heap.
        while least[0][0] != draft.sizes[least[0][2]]:
            heappop(least)
        minus_size, minus_rank, giver = most[0]
        if -minus_size != draft.sizes[giver] or not givable[giver]:
            heappop(most)
            continue
        size, place, taker = least[0]
        if -minus_size - size <= 1:
            break
        draft.give(topic_id, givable[giver].pop(), taker)
        moved += 1
        heappush(least, (size + 1, place, taker))
        heappush(least, (-minus_size - 1, -minus_rank, giver))
        heappush(most, (minus_size + 1, minus_rank, giver))
    return moved

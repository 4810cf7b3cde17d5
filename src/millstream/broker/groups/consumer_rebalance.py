"""What a request of one member does to a consumer group, worked out as records before anything changes.

    1  the member's new metadata; expressions resolved anew where that is due; the group epoch goes up if the
       subscription or the subscribed topics changed
    2  a new target assignment, if there is none for the group epoch yet, at most once in
       group.consumer.assignment.interval.ms; in between members keep to the last one
    3  the member is reconciled with the target assignment

`commit` appends the records as one batch and then replays them. Whether the member may ask at all is decided before,
and what it is told after: see `consumer_groups` and `consumer_migration`.

Departure from Apache Kafka: it resolves expressions again at the earliest ten seconds after the last time; here a new
expression is resolved at once, and newly created topics are looked at after one second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from millstream.broker.groups import consumer_records
from millstream.broker.groups.assignors import ASSIGNORS, GroupSpec, MemberSpec
from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember, Target, reconcile
from millstream.broker.groups.consumer_records import Change
from millstream.broker.groups.consumer_replay import apply_record
from millstream.broker.groups.consumer_subscriptions import (
    PatternCache,
    Resolved,
    all_subscribed_topics,
    metadata_hash,
    subscribed_topics,
    topic_ids,
)
from millstream.broker.groups.group import Group
from millstream.broker.groups.runtime import GroupRuntime
from millstream.logs import get_logger
from millstream.wire.messages.consumer_group_heartbeat import RequestTopicPartitions

_MIN_RESOLUTION_INTERVAL_MS = 1_000

GroupSetting = Callable[[str, str], int | None]
"""Group id and name of a dynamic group config, such as `consumer.session.timeout.ms`; None: it is not set."""

log = get_logger(__name__)


def no_group_setting(group_id: str, name: str) -> int | None:
    """Where there are no dynamic group configs."""
    return None


class MemberUpdate:
    """The records that one member's request leads to, and the member as they leave it."""

    def __init__(self, group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember) -> None:
        self.group = group
        self.old = old
        self.member = new
        self.changes: list[Change] = []
        self.group_epoch = group.group_epoch
        self.resolved: Resolved = group.resolved
        self.replaced_member_id: str | None = None
        """The static member that the new one takes the place of."""
        self.replaced_group: Group | None = None
        """A group of the other kind that gives way."""
        self.reconciled = False
        """A new current assignment was written."""
        self.refreshed = False
        self.resolution: tuple[int, int] | None = None

    def members(self) -> dict[str, ConsumerGroupMember]:
        """All members as they will be."""
        members = self.group.members | {self.member.member_id: self.member}
        if self.replaced_member_id is not None and self.replaced_member_id != self.member.member_id:
            members.pop(self.replaced_member_id, None)
        return members


class ConsumerRebalance:
    """The epochs and assignments of all consumer groups of this coordinator."""

    def __init__(self, runtime: GroupRuntime, setting: GroupSetting) -> None:
        self._runtime = runtime
        self._setting = setting
        self._patterns = PatternCache()
        self._topics_version = 1
        """Counts changes of topics since the start; a group that was replayed is at 0, so its expressions are due."""

    # --- settings and topics -----------------------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        dynamic = self._setting(group_id, "consumer.session.timeout.ms")
        return self._runtime.config.group_consumer_session_timeout_ms if dynamic is None else dynamic

    def heartbeat_interval_ms(self, group_id: str) -> int:
        dynamic = self._setting(group_id, "consumer.heartbeat.interval.ms")
        return self._runtime.config.group_consumer_heartbeat_interval_ms if dynamic is None else dynamic

    def _assignment_interval_ms(self, group_id: str) -> int:
        dynamic = self._setting(group_id, "consumer.assignment.interval.ms")
        return self._runtime.config.group_consumer_assignment_interval_ms if dynamic is None else dynamic

    def topics_changed(self, names: Iterable[str]) -> None:
        """Topics were created, got more partitions or were deleted: groups find out with their next heartbeat."""
        changed = set(names)
        self._topics_version += 1
        for group in self._runtime.groups.values():
            if isinstance(group, ConsumerGroup) and not changed.isdisjoint(group.subscribed_topics()):
                group.needs_metadata_refresh = True

    # --- one member's request ----------------------------------------------------------------------------------------

    def replace_static_member(self, update: MemberUpdate, previous: ConsumerGroupMember) -> None:
        """The new member takes over what the previous one with the same instance id had."""
        group_id = update.group.group_id
        update.replaced_member_id = previous.member_id
        update.changes += consumer_records.without_member(group_id, previous.member_id)
        update.changes += (
            consumer_records.member_metadata(group_id, update.old),
            consumer_records.target_assignment(
                group_id, update.old.member_id, update.group.target_of(previous.member_id)
            ),
            consumer_records.current_assignment(group_id, update.old),
        )

    def update_subscription(self, update: MemberUpdate) -> bool:
        """Step 1. True if the member changed its subscription."""
        group, old, new = update.group, update.old, update.member
        if new != old:
            update.changes.append(consumer_records.member_metadata(group.group_id, new))
        changed = old.subscribed_topic_names != new.subscribed_topic_names
        changed |= (old.subscribed_topic_regex or "") != (new.subscribed_topic_regex or "")
        resolution_changed = self._resolve(update)
        if not (changed or resolution_changed or group.needs_metadata_refresh):
            return False
        names = all_subscribed_topics(update.members().values(), update.resolved)
        hash_now = metadata_hash(names, self._runtime.topics)
        if changed or resolution_changed or hash_now != group.metadata_hash:
            update.group_epoch += 1
            update.changes.append(consumer_records.group_metadata(group.group_id, update.group_epoch, hash_now))
        if group.has_partition_metadata_record:
            update.changes.append(consumer_records.without_partition_metadata(group.group_id))
        update.refreshed = True
        return changed

    def _resolve(self, update: MemberUpdate) -> bool:
        """Resolves expressions that are new or due. True if the topics behind one of them changed."""
        group, expression = update.group, update.member.subscribed_topic_regex or ""
        previous = update.old.subscribed_topic_regex or ""
        now_ms = self._runtime.timer.now_ms()
        age_ms = now_ms - group.last_resolution_ms
        due = bool(group.resolved) and (
            (group.last_resolution_version < self._topics_version and age_ms >= _MIN_RESOLUTION_INTERVAL_MS)
            or age_ms > self._runtime.config.group_consumer_regex_refresh_interval_ms
        )
        if expression == previous and not due and (not expression or expression in group.resolved):
            return False
        if expression and expression not in group.resolved:
            self._patterns.pattern(expression)
        in_use = {name for member in update.members().values() if (name := member.subscribed_topic_regex)}
        wanted = in_use if due else in_use - group.resolved.keys()
        fresh = self._patterns.resolve(sorted(wanted), self._runtime.topics, self._topics_version, now_ms)
        update.resolved = {name: fresh.get(name) or group.resolved[name] for name in in_use}
        if due or len(fresh) == len(in_use):
            update.resolution = (now_ms, self._topics_version)
        update.changes += self._without_unused(group, in_use)
        changed = False
        for name, resolved in fresh.items():
            known = group.resolved.get(name)
            if known is None or known.topics != resolved.topics:
                changed = True
                update.changes.append(
                    consumer_records.regular_expression(
                        group.group_id, name, resolved.topics, resolved.version, resolved.timestamp_ms
                    )
                )
        return changed

    @staticmethod
    def _without_unused(group: ConsumerGroup, in_use: set[str]) -> list[Change]:
        return [
            consumer_records.without_regular_expression(group.group_id, name)
            for name in sorted(group.resolved.keys() - in_use)
        ]

    def reconcile(
        self, update: MemberUpdate, owned: Sequence[RequestTopicPartitions] | None, subscription_changed: bool
    ) -> None:
        """Steps 2 and 3."""
        group = update.group
        epoch, assignment = self._target(update)
        if not subscription_changed and update.member.is_reconciled_to(epoch):
            return
        own_ids = (None, update.member.member_id, update.replaced_member_id)
        names = subscribed_topics(update.member, update.resolved)
        member = reconcile(
            update.member,
            Target(
                epoch=epoch,
                assignment=assignment,
                subscribed_topic_ids=topic_ids(names, self._runtime.topics),
                subscription_changed=subscription_changed,
                is_held_by_another=lambda topic_id, partition: group.owner(topic_id, partition) not in own_ids,
                owned=owned,
            ),
        )
        if member != update.member:
            update.member = member
            update.reconciled = True
            update.changes.append(consumer_records.current_assignment(group.group_id, member))

    def _target(self, update: MemberUpdate) -> tuple[int, dict[bytes, frozenset[int]]]:
        """The epoch of the target assignment and the member's part of it, made anew if it is out of date."""
        group, member_id = update.group, update.member.member_id
        previous_id = member_id if update.replaced_member_id is None else update.replaced_member_id
        now_ms = self._runtime.timer.now_ms()
        too_early = (
            group.assignment_timestamp_ms > 0
            and now_ms < group.assignment_timestamp_ms + self._assignment_interval_ms(group.group_id)
        )
        if group.assignment_epoch >= update.group_epoch or too_early:
            return group.assignment_epoch, dict(group.target_of(previous_id))
        members = update.members()
        ids_by_names: dict[frozenset[str], frozenset[bytes]] = {}
        specs = {}
        for member in members.values():
            names = subscribed_topics(member, update.resolved)
            if names not in ids_by_names:
                ids_by_names[names] = topic_ids(names, self._runtime.topics)
            last = group.target_of(previous_id if member.member_id == member_id else member.member_id)
            specs[member.member_id] = MemberSpec(ids_by_names[names], last, member.instance_id)
        assignor = self._preferred_assignor(members.values())
        assignments = ASSIGNORS[assignor](GroupSpec(specs, self._partition_counts(ids_by_names.values())))
        log.info("new target assignment", group=group.group_id, epoch=update.group_epoch, assignor=assignor)
        for each_id, assignment in assignments.items():
            if assignment != group.target_assignment.get(each_id):
                update.changes.append(consumer_records.target_assignment(group.group_id, each_id, assignment))
        update.changes.append(consumer_records.target_assignment_metadata(group.group_id, update.group_epoch, now_ms))
        return update.group_epoch, dict(assignments[member_id])

    def _partition_counts(self, subscriptions: Iterable[frozenset[bytes]]) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        for topic_id in frozenset().union(*subscriptions):
            name = self._runtime.topics.topic_name(topic_id)
            count = None if name is None else self._runtime.topics.partition_count(name)
            if count is not None:
                counts[topic_id] = count
        return counts

    def _preferred_assignor(self, members: Iterable[ConsumerGroupMember]) -> str:
        """What most members ask for; among equals, and if none asks, what comes first in group.consumer.assignors."""
        configured = self._runtime.config.group_consumer_assignors
        votes = Counter(member.server_assignor_name for member in members)
        return max(configured, key=lambda name: (votes[name], -configured.index(name)))

    def assignor_of(self, group: ConsumerGroup) -> str:
        return self._preferred_assignor(group.members.values())

    # --- members that go ---------------------------------------------------------------------------------------------

    def changes_without(self, group: ConsumerGroup, gone: set[str]) -> list[Change]:
        """Removes members and lets the group epoch go up."""
        changes = [
            change
            for member_id in group.members
            if member_id in gone
            for change in consumer_records.without_member(group.group_id, member_id)
        ]
        rest = [member for member in group.members.values() if member.member_id not in gone]
        in_use = {name for member in rest if (name := member.subscribed_topic_regex)}
        changes += self._without_unused(group, in_use)
        resolved = {name: group.resolved[name] for name in in_use if name in group.resolved}
        hash_now = metadata_hash(all_subscribed_topics(rest, resolved), self._runtime.topics)
        changes.append(consumer_records.group_metadata(group.group_id, group.group_epoch + 1, hash_now))
        return changes

    # --- making it so ------------------------------------------------------------------------------------------------

    def commit_update(self, update: MemberUpdate) -> ConsumerGroup:
        """Writes and applies; the group as it is in the table now."""
        group_id = update.group.group_id
        self.commit(group_id, update.changes, update.replaced_group)
        group = self._runtime.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        if update.refreshed:
            group.needs_metadata_refresh = False
        if update.resolution is not None:
            group.last_resolution_ms, group.last_resolution_version = update.resolution
        return group

    def commit(self, group_id: str, changes: Sequence[Change], replaced: Group | None = None) -> None:
        """One batch in the log, then the same through replay. KafkaError if the log refuses; then nothing changed."""
        records = [*(replaced.tombstones() if replaced is not None else ()), *consumer_records.encoded(changes)]
        if records:
            self._runtime.append(group_id, records)
        if replaced is not None:
            replaced.cancel_timers()
            self._runtime.groups.pop(group_id, None)
        for key, value in changes:
            apply_record(self._runtime.groups, key, value)

"""A consumer group as ConsumerGroupDescribe shows it. Topics that no longer exist are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.broker.groups.consumer_group import ConsumerGroup
from millstream.broker.groups.consumer_member import ConsumerGroupMember
from millstream.broker.groups.group import TopicsView
from millstream.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def described(group: ConsumerGroup, assignor: str, topics: TopicsView) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerGroupMember, topics: TopicsView) -> Member:
    """Its assignment includes what it has yet to revoke: it is still responsible for that."""
    responsible: dict[bytes, set[int]] = {}
    for topic_id, partition in member.responsible_for():
        responsible.setdefault(topic_id, set()).add(partition)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(responsible, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicsView) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions[topic_id]))
            for topic_id in partitions
            if (name := topics.topic_name(topic_id)) is not None
        ]
    )

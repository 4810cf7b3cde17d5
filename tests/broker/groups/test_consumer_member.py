"""Reconciliation of one member, step by step, and the table it goes by."""

import pytest

from millstream.broker.groups.consumer_member import ConsumerGroupMember, Target, reconcile
from millstream.broker.groups.consumer_records import current_assignment, encoded, with_current_assignment
from millstream.broker.groups.consumer_states import (
    RECONCILIATION,
    Condition,
    MemberState,
    Step,
    member_state,
    next_step,
)
from millstream.broker.groups.records import decode_record
from millstream.wire.errors import ErrorCode, KafkaError
from millstream.wire.messages.consumer_group_heartbeat import RequestTopicPartitions
from millstream.wire.messages.group_records import ConsumerGroupCurrentMemberAssignmentValue, TopicPartitions

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def owned(**topics: list[int]) -> list[RequestTopicPartitions]:
    ids = {"t": T, "u": U}
    return [RequestTopicPartitions(topic_id=ids[name], partitions=numbers) for name, numbers in topics.items()]


def member(state: MemberState = STABLE, epoch: int = 5, **changes: object) -> ConsumerGroupMember:
    base = ConsumerGroupMember("m", member_epoch=epoch, previous_member_epoch=epoch - 1, state=state)
    return base._replace(assigned_partitions={T: {0: 3, 1: 5}})._replace(**changes)  # type: ignore[arg-type] # any field


def target(epoch: int = 6, **changes: object) -> Target:
    base = Target(
        epoch=epoch,
        assignment={T: frozenset({0, 1})},
        subscribed_topic_ids=frozenset({T, U}),
        subscription_changed=False,
        is_held_by_another=lambda topic_id, partition: False,
        owned=owned(t=[0, 1]),
    )
    return base._replace(**changes)  # type: ignore[arg-type] # any field


class TestTable:
    def test_every_state_has_a_row_for_everything(self) -> None:
        assert set(RECONCILIATION) == set(MemberState)
        assert all(rows[-1][0] is Condition.ALWAYS for rows in RECONCILIATION.values())

    def test_the_first_row_that_holds_counts(self) -> None:
        both = {Condition.BEHIND_TARGET, Condition.SUBSCRIPTION_CHANGED}
        assert next_step(STABLE, both) is Step.ADVANCE
        assert next_step(STABLE, {Condition.SUBSCRIPTION_CHANGED}) is Step.SHRINK
        assert next_step(STABLE, set()) is Step.KEEP
        assert next_step(UNREVOKED, {Condition.BEHIND_TARGET}) is Step.KEEP

    def test_a_state_of_a_newer_version(self) -> None:
        assert (member_state(2), member_state(3)) == (UNRELEASED, UNKNOWN)


class TestStable:
    def test_nothing_to_do(self) -> None:
        same = member()
        assert reconcile(same, target(epoch=5)) is same

    def test_only_the_epoch(self) -> None:
        after = reconcile(member(), target())
        assert (after.state, after.member_epoch, after.previous_member_epoch) == (STABLE, 6, 5)
        assert after.assigned_partitions == {T: {0: 3, 1: 5}}

    def test_more(self) -> None:
        after = reconcile(member(), target(assignment={T: frozenset({0, 1, 2}), U: frozenset({0})}))
        assert (after.state, after.member_epoch) == (STABLE, 6)
        assert after.assigned_partitions == {T: {0: 3, 1: 5, 2: 6}, U: {0: 6}}

    def test_less(self) -> None:
        after = reconcile(member(), target(assignment={T: frozenset({0})}))
        assert (after.state, after.member_epoch, after.previous_member_epoch) == (UNREVOKED, 5, 5)
        assert (after.assigned_partitions, after.partitions_pending_revocation) == ({T: {0: 3}}, {T: {1: 5}})

    def test_less_of_what_it_no_longer_owns(self) -> None:
        after = reconcile(member(), target(assignment={T: frozenset({0})}, owned=owned(t=[0])))
        assert (after.state, after.member_epoch, after.assigned_partitions) == (STABLE, 6, {T: {0: 3}})

    def test_it_must_revoke_before_it_gets_more(self) -> None:
        after = reconcile(member(), target(assignment={T: frozenset({0, 2})}, owned=None))
        assert (after.state, after.assigned_partitions) == (UNREVOKED, {T: {0: 3}})

    def test_what_another_still_holds_comes_later(self) -> None:
        wanted = target(assignment={T: frozenset({0, 1, 2, 3})}, is_held_by_another=lambda t, partition: partition == 3)
        after = reconcile(member(), wanted)
        assert (after.state, after.member_epoch) == (UNRELEASED, 6)
        assert after.assigned_partitions == {T: {0: 3, 1: 5, 2: 6}}

    def test_a_subscription_that_lost_a_topic(self) -> None:
        changed = target(epoch=5, subscription_changed=True, subscribed_topic_ids=frozenset({U}))
        after = reconcile(member(), changed)
        assert (after.state, after.assigned_partitions) == (UNREVOKED, {})
        assert after.partitions_pending_revocation == {T: {0: 3, 1: 5}}
        at_once = reconcile(member(), changed._replace(owned=[]))
        assert (at_once.state, at_once.assigned_partitions, at_once.partitions_pending_revocation) == (STABLE, {}, {})

    def test_a_subscription_that_lost_nothing(self) -> None:
        same = member()
        assert reconcile(same, target(epoch=5, subscription_changed=True)) is same

    def test_a_target_in_topics_it_is_not_subscribed_to_counts_for_nothing(self) -> None:
        wanted = target(assignment={T: frozenset({0, 1}), U: frozenset({0})}, subscribed_topic_ids=frozenset({T}))
        assert U not in reconcile(member(), wanted).assigned_partitions


class TestUnrevoked:
    waiting = member(UNREVOKED, partitions_pending_revocation={T: {2: 4}, U: {0: 4}})

    @pytest.mark.parametrize("still", [None, owned(t=[0, 1, 2]), owned(u=[0])])
    def test_it_waits_while_one_is_owned(self, still: list[RequestTopicPartitions] | None) -> None:
        assert reconcile(self.waiting, target(owned=still)) is self.waiting

    def test_it_goes_on_to_the_newest_target_when_all_are_let_go(self) -> None:
        after = reconcile(self.waiting, target(epoch=9))
        assert (after.state, after.member_epoch, after.partitions_pending_revocation) == (STABLE, 9, {})

    def test_it_may_have_to_revoke_again(self) -> None:
        after = reconcile(self.waiting, target(epoch=9, assignment={T: frozenset({1})}))
        assert (after.state, after.member_epoch, after.partitions_pending_revocation) == (UNREVOKED, 5, {T: {0: 3}})

    def test_it_may_get_back_what_it_revoked(self) -> None:
        wanted = target(assignment={T: frozenset({0, 1, 2})})
        assert reconcile(self.waiting, wanted).assigned_partitions == {T: {0: 3, 1: 5, 2: 6}}

    def test_a_subscription_that_lost_a_topic_meanwhile(self) -> None:
        changed = target(owned=None, subscription_changed=True, subscribed_topic_ids=frozenset({U}))
        after = reconcile(self.waiting, changed)
        assert (after.state, after.assigned_partitions) == (UNREVOKED, {})
        assert after.partitions_pending_revocation == {T: {0: 3, 1: 5, 2: 4}, U: {0: 4}}


class TestUnreleased:
    def test_it_gets_what_has_become_free(self) -> None:
        waiting = member(UNRELEASED, epoch=6)
        wanted = target(assignment={T: frozenset({0, 1, 2})})
        held = reconcile(waiting, wanted._replace(is_held_by_another=lambda t, partition: True))
        assert (held.state, held.assigned_partitions) == (UNRELEASED, waiting.assigned_partitions)
        assert reconcile(waiting, wanted).assigned_partitions == {T: {0: 3, 1: 5, 2: 6}}


class TestUnknown:
    def test_it_must_come_with_nothing(self) -> None:
        with pytest.raises(KafkaError) as refusal:
            reconcile(member(UNKNOWN), target())
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
        assert reconcile(member(UNKNOWN), target(owned=[])).state is STABLE


class TestRecord:
    def test_it_is_read_as_it_was_written(self) -> None:
        before = member(UNREVOKED, partitions_pending_revocation={U: {7: 2}})
        decoded = decode_record(encoded([current_assignment("g", before)])[0])
        assert decoded is not None
        value = decoded[1]
        assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
        assert with_current_assignment(ConsumerGroupMember("m"), value) == before

    @pytest.mark.parametrize(("member_epoch", "expected"), [(4, 4), (-2, 0)])
    def test_epochs_that_an_older_broker_did_not_write(self, member_epoch: int, expected: int) -> None:
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member_epoch, assigned_partitions=[TopicPartitions(topic_id=T, partitions=[0])]
        )
        after = with_current_assignment(ConsumerGroupMember("m"), value)
        assert after.assigned_partitions == {T: {0: expected}}

"""The states of a consumer group and of its members (KIP-848), and the table by which a member is reconciled.

The coordinator computes a *target assignment* for the group. Each member is moved towards its part of it by its own
heartbeats, in three steps that keep a partition from ever having two owners: the member is told to revoke what is no
longer its own and stays at its epoch until it reports that it has (UNREVOKED_PARTITIONS); then it moves to the target's
epoch and gets what is free; what another member still holds it gets later (UNRELEASED_PARTITIONS).

    member's state            when                                            step
    STABLE                    its epoch is not the target's                   ADVANCE
                              it changed its subscription                     SHRINK
                              otherwise                                       KEEP
    UNREVOKED_PARTITIONS      it no longer owns what it was to revoke         ADVANCE
                              it changed its subscription                     SHRINK
                              otherwise                                       KEEP
    UNRELEASED_PARTITIONS     always                                          ADVANCE
    UNKNOWN                   it owns nothing                                 ADVANCE
                              otherwise                                       FENCE

    ADVANCE leads to          when
    UNREVOKED_PARTITIONS      the member still owns a partition that is not in its target
    UNRELEASED_PARTITIONS     otherwise, if a partition of its target has another owner
    STABLE                    otherwise
"""

from __future__ import annotations

from enum import Enum, IntEnum


class ConsumerGroupState(Enum):
    """The state of a group, by the name under which it is described."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """The state of a member, by the number under which it is stored."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127
    """Written by a newer version."""


class Condition(Enum):
    """What a heartbeat may say about a member; several may hold at once."""

    BEHIND_TARGET = "its epoch is not the target's"
    REVOKED = "it no longer owns what it was to revoke"
    OWNS_NOTHING = "it owns nothing"
    SUBSCRIPTION_CHANGED = "it changed its subscription"
    ALWAYS = "otherwise"


class Step(Enum):
    """What is done to a member."""

    KEEP = "nothing"
    SHRINK = "what it is no longer subscribed to is revoked"
    ADVANCE = "it moves towards the target assignment"
    FENCE = "it must rejoin with nothing"


RECONCILIATION: dict[MemberState, tuple[tuple[Condition, Step], ...]] = {
    MemberState.STABLE: (
        (Condition.BEHIND_TARGET, Step.ADVANCE),
        (Condition.SUBSCRIPTION_CHANGED, Step.SHRINK),
        (Condition.ALWAYS, Step.KEEP),
    ),
    MemberState.UNREVOKED_PARTITIONS: (
        (Condition.REVOKED, Step.ADVANCE),
        (Condition.SUBSCRIPTION_CHANGED, Step.SHRINK),
        (Condition.ALWAYS, Step.KEEP),
    ),
    MemberState.UNRELEASED_PARTITIONS: ((Condition.ALWAYS, Step.ADVANCE),),
    MemberState.UNKNOWN: (
        (Condition.OWNS_NOTHING, Step.ADVANCE),
        (Condition.ALWAYS, Step.FENCE),
    ),
}


def member_state(value: int) -> MemberState:
    """The state behind a stored number."""
    return MemberState(value) if value in MemberState._value2member_map_ else MemberState.UNKNOWN


def next_step(state: MemberState, conditions: set[Condition]) -> Step:
    """The first row of the member's state whose condition holds."""
    return next(
        step for condition, step in RECONCILIATION[state] if condition is Condition.ALWAYS or condition in conditions
    )


def state_after_advance(*, must_revoke: bool, waits_for_release: bool) -> MemberState:
    if must_revoke:
        return MemberState.UNREVOKED_PARTITIONS
    return MemberState.UNRELEASED_PARTITIONS if waits_for_release else MemberState.STABLE

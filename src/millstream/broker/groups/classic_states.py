"""The states of a classic group, as a table.

state                 means                                                    members get on a heartbeat
Empty                 no members; perhaps offsets                              UNKNOWN_MEMBER_ID
PreparingRebalance    waits for the members to (re)join                        REBALANCE_IN_PROGRESS
CompletingRebalance   members have the generation, the leader's assignment     NONE
                      is still to come
Stable                all have their assignment                                NONE
Dead                  the coordinator lets go of the group                     COORDINATOR_NOT_AVAILABLE
"""

from __future__ import annotations

from enum import Enum


class ClassicState(Enum):
    """The value is the name that ListGroups and DescribeGroups print."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = ClassicState

TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    _EMPTY: frozenset((_PREPARING, _DEAD)),
    _PREPARING: frozenset((_COMPLETING, _EMPTY, _DEAD)),
    _COMPLETING: frozenset((_STABLE, _PREPARING, _DEAD)),
    _STABLE: frozenset((_PREPARING, _DEAD)),
    _DEAD: frozenset((_DEAD,)),
}
"""From each state, the states that may follow."""

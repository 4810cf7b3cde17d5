"""The states of a transactional id and the transitions between them, as one table.

    Empty ------------> Ongoing ------> PrepareCommit -> CompleteCommit
      |                  ^   |                              | (next transaction: back to Ongoing;
      |                  |   +--------> PrepareAbort  -> CompleteAbort   next instance: back to Empty)
      +--- an abort without partitions (transactions v2) --^

The numbers are those in the records of `__transaction_state`. A transaction is decided by the record that says
PrepareCommit or PrepareAbort: from there the table leaves it only one way on. Dead and PrepareEpochFence are never
written; they are here because clients may name them in a filter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """The name in DescribeTransactions and ListTransactions: `CompleteCommit`."""
        return _TEXTS[self]

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided, the markers are not all written."""
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT

    @property
    def may_expire(self) -> bool:
        return self in _EXPIRABLE


_S = TransactionState
_TEXTS: Final = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in _S}
_EXPIRABLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

STATES_BY_TEXT: Final = {text: state for state, text in _TEXTS.items()}

TRANSITIONS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.DEAD: frozenset(),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
}
"""From each state, where it may go."""

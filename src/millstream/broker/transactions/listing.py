"""Which transactional ids ListTransactions shows: the filters of all its versions.

An empty filter lets everything through. The pattern is a regular expression that must match the whole transactional id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from millstream.broker.regular_expressions import InvalidRegularExpression, Pattern
from millstream.broker.transactions.metadata import TransactionMetadata
from millstream.broker.transactions.states import STATES_BY_TEXT
from millstream.wire.errors import ErrorCode, KafkaError


class Listing(NamedTuple):
    transactions: list[TransactionMetadata]
    unknown_states: list[str]
    """States the client asked for that do not exist; it may be newer than we are."""


def list_transactions(
    transactions: Iterable[TransactionMetadata],
    now_ms: int,
    *,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
) -> Listing:
    wanted_states = {STATES_BY_TEXT[text] for text in states if text in STATES_BY_TEXT}
    wanted_ids = frozenset(producer_ids)
    expression = _compiled(pattern) if pattern else None

    def is_wanted(metadata: TransactionMetadata) -> bool:
        return (
            (not wanted_ids or metadata.producer_id in wanted_ids)
            and (not states or metadata.state in wanted_states)
            and (duration_ms < 0 or now_ms - metadata.start_ms > duration_ms)
            and (expression is None or expression.matches(metadata.transactional_id))
        )

    return Listing(
        [metadata for metadata in transactions if is_wanted(metadata)],
        [text for text in dict.fromkeys(states) if text not in STATES_BY_TEXT],
    )


def _compiled(pattern: str) -> Pattern:
    try:
        return Pattern(pattern)
    except InvalidRegularExpression as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error

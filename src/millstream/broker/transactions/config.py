"""The settings of the transaction coordinator: Kafka's names in snake_case, Kafka's types and Kafka's defaults.

One immutable value. Which file, flag or variable a value comes from is not known here.
"""

from __future__ import annotations

from typing import NamedTuple


class TransactionConfig(NamedTuple):
    """All `transaction.*` and `transactional.*` settings that change what the coordinator does."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_two_phase_commit_enable: bool = False
    transaction_partition_verification_enable: bool = True

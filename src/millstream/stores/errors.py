"""Why a store does not start: one sentence for a person, with what would help."""

from __future__ import annotations


class StoreError(Exception):
    """The store is not installed or did not start; nothing of it is left running."""

    exit_code = 1

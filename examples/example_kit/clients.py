"""Settings that the examples' Kafka clients share."""

from __future__ import annotations

from typing import Any

PARTITIONER = "murmur2_random"
"""Kafka's own, so that a key goes to the same partition whatever client writes it."""


def patient(bootstrap: str) -> dict[str, Any]:
    """Where the cluster is, and settings that let a client sit out its absence.

    librdkafka's own recovery forgets all brokers when none can be reached; what was under way with one of them, such as
    a group's offsets in a transaction, then waits for ever (confluentinc/librdkafka, issues 5511 and 5456).
    """
    return {
        "bootstrap.servers": bootstrap,
        "metadata.recovery.strategy": "none",
        "reconnect.backoff.max.ms": 2000,
    }


def quiet(bootstrap: str) -> dict[str, Any]:
    """The same without librdkafka's own words about absences: for a run's cluster, which is watched (`presence`)."""
    return {**patient(bootstrap), "log_level": 0}

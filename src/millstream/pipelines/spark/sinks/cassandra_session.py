"""Sessions with Cassandra, one for each process and place; its errors sorted by blame.

A session is dear (connections to every node, the schema read) and safe to share, so a worker process of Spark keeps it
from batch to batch.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from cassandra import (
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    Timeout,
    Unavailable,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.protocol import IsBootstrappingErrorMessage, OverloadedErrorMessage

DEFAULT_PORT = 9042
REQUEST_SECONDS = 10.0

PASSING = (
    NoHostAvailable,
    OperationTimedOut,
    Timeout,
    Unavailable,
    ConnectionException,
    OverloadedErrorMessage,
    IsBootstrappingErrorMessage,
)
"""Nodes that are away, slow or busy."""
OF_THE_ROW = (InvalidRequest, TypeError, ValueError, AttributeError, OverflowError, struct.error)
"""A value that the column cannot hold: found by the server, or by the driver when it packs it."""


class Address(NamedTuple):
    """Where to connect, and as whom."""

    hosts: tuple[tuple[str, int], ...]
    user: str | None
    password: str | None
    consistency: str
    seconds: float = REQUEST_SECONDS
    """How long an answer may take."""


_sessions: dict[Address, Session] = {}


def session_for(address: Address) -> Session:
    """The process's session, made if there is none; NoHostAvailable if nobody answers."""
    if address not in _sessions:
        _sessions[address] = connect(address).connect()
    return _sessions[address]


def connect(address: Address) -> Cluster:
    """A cluster of its own; the caller shuts it down."""
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
        consistency_level=ConsistencyLevel.name_to_value[address.consistency.upper()],
        request_timeout=address.seconds,
    )
    auth = PlainTextAuthProvider(address.user, address.password or "") if address.user else None
    return Cluster(
        list(address.hosts),
        port=address.hosts[0][1],
        auth_provider=auth,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=address.seconds,
        control_connection_timeout=address.seconds,
    )


def parse_address(text: str, user: str | None, password: str | None, consistency: str) -> Address:
    """HOST:PORT,HOST:PORT taken apart; ValueError says what is wrong."""
    if consistency.upper() not in ConsistencyLevel.name_to_value:
        known = ", ".join(ConsistencyLevel.name_to_value)
        raise ValueError(f"consistency: there is no level {consistency}; there are {known}")
    hosts = []
    for part in text.split(","):
        host, separator, port = part.strip().rpartition(":")
        if not separator:
            host, port = port, str(DEFAULT_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{part.strip()!r} is not an address: write HOST:PORT, several with commas")
        hosts.append((host.strip("[]"), int(port)))
    return Address(tuple(hosts), user, password, consistency.upper())


def words(error: Any) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__

"""How a cluster's answers are read: Kafka's error codes as `ClusterError`, and the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NoReturn

from millstream.cluster.errors import BadInput, ClusterError, NotFound, Unreachable

UNKNOWN_TOPIC_OR_PARTITION = 3
TOPIC_ALREADY_EXISTS = 36
INVALID_CONFIG = 40
_NOT_FOUND = {UNKNOWN_TOPIC_OR_PARTITION, 69, 100}  # GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_ID
_BAD_INPUT = {17, 37, 38, 39, INVALID_CONFIG, 42}  # INVALID_TOPIC ... INVALID_REQUEST: what was asked for is wrong


def refuse(what: str, code: int, message: str | None) -> NoReturn:
    """Raises what an error code of an answer means; `what` names the thing that was asked about."""
    from kafka.errors import for_code

    kind = for_code(code)
    text = f"{what}: {(message or kind.description or 'no reason given').rstrip('.')} ({kind.message})"
    if code in _NOT_FOUND:
        raise NotFound(text)
    raise (BadInput if code in _BAD_INPUT else ClusterError)(text)


def refuse_client(what: str, error: Any) -> NoReturn:
    """Raises what an error of the confluent-kafka client means (its `KafkaError`, or an exception that holds one)."""
    error = error.args[0] if isinstance(error, Exception) else error
    if error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_WAIT_COORD"):
        raise Unreachable(f"{what}: the cluster does not answer any more ({error.str()})")
    if error.code() > 0:
        refuse(what, error.code(), error.str())
    raise ClusterError(f"{what}: {error.str()}")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if one of the known names is close, else nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""

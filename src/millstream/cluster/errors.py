"""What can go wrong with a cluster, by what a person or a script can do about it."""

from __future__ import annotations


class ClusterError(Exception):
    """It could not be done; the message says what, why, and what would help."""

    exit_code = 1


class BadInput(ClusterError):  # noqa: N818 - the input is bad; nothing has failed
    """An argument is wrong: which one, what was wrong with it, what would be right."""

    exit_code = 2


class Unreachable(ClusterError):  # noqa: N818 - the state of the cluster, not of us
    """No broker answers at the address."""

    exit_code = 3


class NotFound(ClusterError):  # noqa: N818 - the thing is not there
    """The topic, group, broker or transaction that was named does not exist."""

    exit_code = 4

"""To peers on this machine the kernel sends at once, not at a pace.

Where the system's congestion control is BBR, a timer decides when the next 64 kB leave. Over a network that is good; to
a peer on this machine, to whom nothing gets lost, the timers are up to half of the work of a large fetch. A connection
that began with BBR stays paced whatever it is told later, so the listener begins without, and connections from
elsewhere get the system's choice back.
"""

from __future__ import annotations

import socket
from contextlib import suppress

_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)
_NAME_BYTES = 16
_PACED = b"bbr"
_NOT_PACED = b"reno"
"""Every kernel has it, and it is everybody's to choose."""


def take_away(listener: socket.socket) -> bytes | None:
    """From the connections that it will accept; what they had, or None if nobody paces them."""
    if _CONGESTION is None:
        return None
    found = listener.getsockopt(socket.IPPROTO_TCP, _CONGESTION, _NAME_BYTES).rstrip(b"\0")
    if not found.startswith(_PACED):
        return None
    try:
        listener.setsockopt(socket.IPPROTO_TCP, _CONGESTION, _NOT_PACED)
    except OSError:  # an administrator may leave no choice
        return None
    return found


def give_back(peer: socket.socket, taken: bytes) -> None:
    """To a connection from elsewhere."""
    if _CONGESTION is not None:
        with suppress(OSError):
            peer.setsockopt(socket.IPPROTO_TCP, _CONGESTION, taken)

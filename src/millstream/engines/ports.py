"""Ports on the loopback address: is one taken, and which are free.

Free ports are looked for below the range from which the kernel takes the ports of outgoing connections: a client that
keeps trying to reach a stopped broker there could otherwise be given the broker's own port.
"""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
FIRST, LAST = 20_000, 32_000


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a closed one may still linger
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        port = random.randint(FIRST, LAST)
        if port not in found and is_free(port):
            found.append(port)
    return found

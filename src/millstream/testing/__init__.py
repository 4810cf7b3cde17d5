"""A server inside a test: `with running_server() as server: connect(server.bootstrap_servers)`.

The server runs on a thread of the test's own process with a data folder of its own, so it is ready in a few
milliseconds and any client can be pointed at it. `millstream.testing.plugin` has the pytest fixtures. Nothing here is
for production.

The server's code is imported when it is first asked for: pytest loads this package in every session of everybody who
has Millstream installed, and should not notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.testing.server import TestServer, running_server

__all__ = ["TestServer", "running_server"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from millstream.testing import server

    return getattr(server, name)

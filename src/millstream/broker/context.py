"""Who asks, and how: what a handler may know about a request beyond its message."""

from __future__ import annotations


class RequestContext:
    """The request that a connection is at, and what is true of all its requests: there is one at a time."""

    __slots__ = (
        "api_version",
        "client_host",
        "client_id",
        "close",
        "connection_id",
        "listener",
        "local_host",
        "principal",
        "throttle_ms",
    )

    def __init__(
        self,
        *,
        api_version: int = 0,
        client_id: str = "",
        client_host: str = "/127.0.0.1",
        connection_id: str = "",
        listener: str = "PLAINTEXT",
        local_host: str = "127.0.0.1",
        principal: str = "User:ANONYMOUS",
    ) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host
        """As Kafka prints it: a slash and the address."""
        self.connection_id = connection_id
        self.listener = listener
        self.local_host = local_host
        """The address of ours that the client connected to: where it can reach us again."""
        self.principal = principal
        self.throttle_ms = 0
        """Set by a quota: the connection is not read from for that long after the response."""
        self.close = False
        """Set by a handler that answers nothing but wants the peer to notice (a failed produce without acks)."""

    def begin(self, api_version: int, client_id: str) -> None:
        """Another request of the same connection."""
        self.api_version = api_version
        self.client_id = client_id
        self.throttle_ms = 0
        self.close = False

"""The server: listeners, connections, background work; start, run and stop.

One process, one event loop. `start` opens the data folder and the sockets, `run` waits for the word to stop, `stop`
lets the responses under way out and closes everything in order. Blocking work (fsync, compaction) happens in the
log's worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.broker.broker import Broker
from millstream.broker.configs.listeners import Listener, broker_listeners
from millstream.log.manager import DataFolderLockedError
from millstream.logs import get_logger
from millstream.server import pacing
from millstream.server.connection import Connection
from millstream.server.frames import BufferPool
from millstream.server.memory import RequestMemory
from millstream.server.metrics import RequestMetrics
from millstream.server.metrics_endpoint import MetricsEndpoint

if TYPE_CHECKING:
    from millstream.broker.configs.settings import Settings

log = get_logger(__name__)

IDLE_SWEEP_SECONDS = 5.0
LISTEN_ERRORS = {
    errno.EADDRINUSE: "the port is taken, perhaps by another server (use --listen; port 0 takes a free one)",
    errno.EACCES: "permission denied; ports below 1024 need privileges",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}
STOP_GRACE_SECONDS = 2.0
WILDCARD = "0.0.0.0"


class ServerError(Exception):
    """The server cannot start; the message says why and what would help."""


class Server:
    """One server on one data folder."""

    def __init__(self, settings: Settings, data: Path, *, ephemeral: bool = False) -> None:
        self.settings = settings
        self.broker = Broker(settings, data, ephemeral=ephemeral)
        self.metrics = RequestMetrics()
        self.request_memory = RequestMemory(settings.int("queued.max.request.bytes"))
        self.frame_buffers = BufferPool()
        self.connections: set[Connection] = set()
        self.is_handling = False
        """Whether a connection is at its requests, and will look for those that can be answered."""
        self._answerable: list[Connection] = []
        self.metrics_endpoint = MetricsEndpoint(self)
        self._listeners: list[asyncio.Server] = []
        self.addresses: dict[str, tuple[str, int]] = {}
        """Where each listener listens, by its name."""
        self.pacing_taken: bytes | None = None
        """From peers on this machine."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._without_connections = asyncio.Event()
        self._without_connections.set()
        self._max_idle_seconds = settings.int("connections.max.idle.ms") / 1000

    @property
    def address(self) -> str:
        """The first listener's, as a client would write it."""
        host, port = next(iter(self.addresses.values()))
        return f"[{host}]:{port}" if ":" in host else f"{host or WILDCARD}:{port}"

    # --- start, run, stop ---

    async def start(self) -> None:
        try:
            for listener in broker_listeners(self.settings):
                await self._listen(listener)
            self.broker.start(self.addresses)
        except DataFolderLockedError as error:
            self._close_listeners()
            raise ServerError(f"{error}; one server for each data folder (use --data)") from error
        except BaseException:
            self._close_listeners()
            raise
        for server in self._listeners:
            await server.start_serving()
        self._tasks = [
            asyncio.create_task(self._sweep_idle_connections()),
            asyncio.create_task(self.broker.maintain()),
        ]

    async def start_metrics(self, host: str, port: int, *, fall_back: bool) -> None:
        """Opens the metrics port; with `fall_back` any free port will do if that one is taken."""
        try:
            await self.metrics_endpoint.start(host, port)
        except OSError as error:
            if not fall_back or error.errno != errno.EADDRINUSE:
                raise ServerError(f"cannot listen on {host}:{port} for metrics: {error.strerror}") from error
            await self.metrics_endpoint.start(host, 0)

    async def run(self) -> None:
        """Until `request_stop`."""
        await self._stopping.wait()

    def request_stop(self) -> None:
        self._stopping.set()

    async def stop(self) -> None:
        self._close_listeners()
        await self.metrics_endpoint.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in list(self.connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._without_connections.wait(), STOP_GRACE_SECONDS)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # the sockets are closed in the loop's next turn
        await self.broker.stop()

    async def _listen(self, listener: Listener) -> None:
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self, listener.name),
                listener.host or None,
                listener.port,
                backlog=self.settings.int("socket.listen.backlog.size"),
                start_serving=False,
            )
        except OSError as error:
            reason = LISTEN_ERRORS.get(error.errno or 0, error.strerror or str(error))
            raise ServerError(f"cannot listen on {listener.host}:{listener.port}: {reason}") from error
        for listening in server.sockets:
            self.pacing_taken = pacing.take_away(listening)
        self._listeners.append(server)
        self.addresses[listener.name] = (listener.host, server.sockets[0].getsockname()[1])

    def _close_listeners(self) -> None:
        for server in self._listeners:
            server.close()
        self._listeners.clear()

    # --- connections ---

    def admit(self, connection: Connection) -> str | None:
        """Takes a new connection in, or says why not."""
        refusal = self._refusal(connection.client_host)
        if refusal is not None:
            self.metrics.connections_refused += 1
            return refusal
        self.metrics.connections_accepted += 1
        self.connections.add(connection)
        self._without_connections.clear()
        return None

    def _refusal(self, client_host: str) -> str | None:
        configs = self.broker.configs
        if len(self.connections) >= configs.int("max.connections"):
            return f"max.connections is {configs.int('max.connections')}"
        overrides = dict(_per_ip(configs.str("max.connections.per.ip.overrides")))
        limit = overrides.get(client_host.removeprefix("/"), configs.int("max.connections.per.ip"))
        if limit <= len(self.connections):
            same = sum(1 for other in self.connections if other.client_host == client_host)
            if same >= limit:
                return f"{client_host.removeprefix('/')} may have {limit} connections (max.connections.per.ip)"
        return None

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._without_connections.set()

    def answer_soon(self, connection: Connection) -> None:
        """What its peer waits for is there: answered by the request that brought it, or in the loop's next turn."""
        if not self._answerable and not self.is_handling:
            asyncio.get_running_loop().call_soon(self.answer_waiting)
        self._answerable.append(connection)

    def answer_waiting(self) -> None:
        if self._answerable:
            connections, self._answerable = self._answerable, []
            for connection in connections:
                connection.answer()

    async def _sweep_idle_connections(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SWEEP_SECONDS)
            horizon = time.monotonic() - self._max_idle_seconds
            for connection in list(self.connections):
                if connection.is_idle and connection.last_active < horizon:
                    connection.close_idle()


def _per_ip(text: str) -> Iterator[tuple[str, int]]:
    """`max.connections.per.ip.overrides`: address:count, with commas between them."""
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, _, count = entry.rpartition(":")
        yield address, int(count)

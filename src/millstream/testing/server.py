"""A log server on a thread of this process, for tests."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from millstream.broker.configs.settings import Settings
from millstream.server.server import Server

TEST_SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}
"""What a test wants to be different from production: no waiting for group members that will not come."""
START_TIMEOUT_SECONDS = 30


class TestServer:
    """A running server and where to reach it."""

    __test__ = False  # not a test case, whatever its name makes pytest think

    def __init__(self, settings: Mapping[str, str], data: Path, *, ephemeral: bool) -> None:
        self.settings = Settings({**TEST_SETTINGS, **settings})
        self.data = data
        self._ephemeral = ephemeral
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="millstream", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._server: Server | None = None

    @property
    def bootstrap_servers(self) -> str:
        assert self._server is not None
        return self._server.address

    @property
    def host(self) -> str:
        return self.bootstrap_servers.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Where each listener listens, by its name."""
        assert self._server is not None
        return self._server.addresses

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_SECONDS):
            raise TimeoutError(f"the server was not ready within {START_TIMEOUT_SECONDS} s")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._server is not None:
            self._loop.call_soon_threadsafe(self._server.request_stop)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        server = Server(self.settings, self.data, ephemeral=self._ephemeral)
        await server.start()
        self._server = server
        self._ready.set()
        try:
            await server.run()
        finally:
            await server.stop()


@contextmanager
def running_server(settings: Mapping[str, str] | None = None, data: Path | None = None) -> Iterator[TestServer]:
    """A server with Kafka's `settings`, on `data` or on a temporary folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="millstream-test-", ignore_cleanup_errors=True) as temporary:
        server = TestServer(settings or {}, data or Path(temporary), ephemeral=data is None)
        server.start()
        try:
            yield server
        finally:
            server.stop()

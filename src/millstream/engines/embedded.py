"""The embedded engine: Millstream's own log server, on a thread of this process.

The server has its own event loop on its own thread; whoever starts it keeps the main thread for signals and for what it
shows. The data folder is the one of `millstream serve`: Kafka's layout at its root, and beside it the marker `engine`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.engines import folder, ports
from millstream.engines.engine import Process
from millstream.engines.errors import EngineError, EngineInputError
from millstream.jvm.progress import Progress, Step, silent

if TYPE_CHECKING:
    from millstream.broker.configs.settings import Settings
    from millstream.server.server import Server

DEFAULT_PORT = 9092
METRICS_PORT = 9644
DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}
"""As in the kafka engine: on one machine nobody waits for more members of a new group."""


class EmbeddedEngine:
    """The log server on one data folder."""

    name = "embedded"

    def __init__(
        self, data: Path, *, port: int | None = None, settings: Mapping[str, str] | None = None, log: Path | None = None
    ) -> None:
        """`port`: where clients connect, 0 takes a free one. `log`: the file to which the caller sends log lines."""
        self.data = data.resolve()
        self._port = port
        self._given = dict(settings or {})
        self._log = log or self.data / "server.log"
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._server: Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def bootstrap(self) -> str:
        return "" if self._server is None else self._server.address

    def start(self, progress: Progress = silent) -> None:
        from millstream.server.server import ServerError

        settings = self._settings()
        folder.claim(self.data, self.name)
        progress(Step("starting the log server"))
        self._ready.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=(settings,), name="log server", daemon=True)
        self._thread.start()
        try:
            self._ready.wait()
        except BaseException:
            self.stop()
            raise
        if self._failure is not None:
            self._thread.join()
            if isinstance(self._failure, ServerError | OSError):
                raise EngineError(str(self._failure)) from self._failure
            raise self._failure

    def stop(self) -> None:
        if self._thread is not None:
            self._ready.wait()
            if self._loop is not None and self._server is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._server.request_stop)
            self._thread.join()
            self._thread = None

    def processes(self) -> list[Process]:
        alive = self._thread is not None and self._thread.is_alive()
        return [Process("broker", 1, "broker,controller", self.bootstrap, os.getpid() if alive else None, self._log)]

    def health(self) -> list[str]:
        if self._failure is not None:
            return [f"the log server failed: {self._failure!r} (see {self._log})"]
        return [] if self._thread is not None and self._thread.is_alive() else ["the log server does not run"]

    def _settings(self) -> Settings:
        from millstream.broker.configs.settings import Settings, SettingsError

        try:
            settings = Settings.load(None, os.environ, [f"{name}={value}" for name, value in self._given.items()])
            settings = settings.replace({**DEFAULTS, **settings.values})
            if self._port is None and "listeners" in settings.values:
                return settings
            port = DEFAULT_PORT if self._port is None else self._port
            if port and not ports.is_free(port):
                raise EngineError(
                    f"port {port} is taken, perhaps by another server: give another with --port (0 takes a free one)"
                )
            return settings.replace({"listeners": f"PLAINTEXT://{ports.HOST}:{port}"})
        except SettingsError as error:
            raise EngineInputError(str(error)) from error

    def _run(self, settings: Settings) -> None:
        try:
            with asyncio.Runner(loop_factory=_new_loop) as runner:
                runner.run(self._serve(settings))
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, settings: Settings) -> None:
        from millstream.server.server import Server

        server = Server(settings, self.data)
        await server.start()
        try:
            host = next(iter(server.addresses.values()))[0]
            await server.start_metrics(host, METRICS_PORT, fall_back=True)
            self._server, self._loop = server, asyncio.get_running_loop()
            self._ready.set()
            await server.run()
        finally:
            await server.stop()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()

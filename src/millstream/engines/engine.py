"""What every engine is: something that starts on a data folder, has an address, and stops.

An engine tells its progress to a callback while it starts, and never prints. `start` returns when clients can work with
it and raises `EngineError` otherwise, with nothing left running. `stop` ends it cleanly and may be called twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from millstream.jvm.progress import Progress, silent


class Process(NamedTuple):
    """One process of an engine: a broker, a controller or both."""

    name: str
    node_id: int
    roles: str
    address: str | None
    """Where clients reach it; none for a mere controller."""
    pid: int | None
    """None when it does not run."""
    log: Path


class Engine(Protocol):
    """Start one, get its address, stop it."""

    name: str

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        ...

    def start(self, progress: Progress = silent) -> None: ...

    def stop(self) -> None: ...

    def processes(self) -> list[Process]: ...

    def health(self) -> list[str]:
        """What is wrong, a sentence each; empty when all is well."""
        ...

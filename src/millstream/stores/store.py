"""What every store is: something that starts in a folder, answers on a port of this machine, and stops.

A store is started and stopped as often as one likes, on the same port with the same data: `kill` and `start` is a crash
and a recovery, `pause` and `resume` is a store that hangs. As a context manager it starts at the beginning and is
closed at the end. The folder is the caller's, or a temporary one that goes away with `close`. `start` returns when
clients can work with the store, and raises `StoreError` otherwise, with nothing left running.

A subclass says how to prepare the folder (`_prepare`, each time before a start), what to run (`_launch`) and how to
tell that it answers (`_answers`).
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from millstream.engines import ports, processes
from millstream.jvm.errors import JvmError
from millstream.jvm.progress import Progress, Step, silent
from millstream.stores.child import Child, account
from millstream.stores.errors import StoreError

POLL_SECONDS = 0.02
ANSWER_SECONDS = 2.0


class Store(ABC):
    """A store on this machine; a context manager."""

    title: ClassVar[str]
    """What a person calls it."""
    start_seconds: ClassVar[float] = 60
    stop_seconds: ClassVar[float] = 15
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    log_marks: ClassVar[tuple[str, ...]] = processes.JAVA_MARKS
    """What stands before the reason in a log of a store that ended by itself."""

    def __init__(self, folder: Path | None = None, *, port: int | None = None) -> None:
        """`folder`: where its data are, by default a temporary one. `port`: by default a free one."""
        self._temporary = folder is None
        self._folder = None if folder is None else folder.resolve()
        self.host = ports.HOST
        self.port = port or ports.free_ports(1)[0]
        self._user: str | None = None
        self._children: list[Child] = []

    # --- what a store says for itself ---

    @abstractmethod
    def _prepare(self, progress: Progress) -> None:
        """Makes what is missing in the folder, and finds the programs."""

    @abstractmethod
    def _launch(self) -> None:
        """Starts the processes, by `_run`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether clients can work with it; an OSError is a no."""

    # --- start, stop, and what may happen to it in between ---

    def start(self, progress: Progress = silent) -> None:
        if self.is_running():
            raise StoreError(f"{self.title} runs already in {self.folder}")
        self._end_all()  # one of several processes may have gone
        self._children.clear()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._prepare(progress)
            if not ports.is_free(self.port):  # or whoever is there would answer in its place
                raise StoreError(f"port {self.port} is taken, perhaps by another server: {self.title} needs another")
            progress(Step(f"starting {self.title}"))
            self._launch()
            self._wait_for(self._answers)
        except (JvmError, OSError) as error:
            self._end_all()
            raise StoreError(f"{self.title} cannot be started: {error}") from error
        except BaseException:
            self._end_all()
            raise

    def stop(self) -> None:
        """Ends it cleanly and keeps its folder; may be called twice."""
        running = [child for child in reversed(self._children) if child.is_running()]
        for child in running:
            child.request_stop(self.stop_signal)
        for child in running:
            child.wait(self.stop_seconds)
        self._end_all()

    def kill(self) -> None:
        """SIGKILL to all of its processes, as if its machine had gone."""
        self._end_all()

    def pause(self) -> None:
        """SIGSTOP: it is there and answers nothing; `resume` ends that."""
        for child in self._children:
            child.signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        for child in self._children:
            child.signal_group(signal.SIGCONT)

    def close(self) -> None:
        """Stops it, and removes the folder if it is a temporary one."""
        self.stop()
        if self._temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what it is now ---

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"millstream-{type(self).__name__.lower()}-")).resolve()
        return self._folder

    def is_running(self) -> bool:
        return bool(self._children) and all(child.is_running() for child in self._children)

    def pids(self) -> list[int]:
        return [child.pid for child in self._children if child.is_running()]

    def logs(self) -> list[Path]:
        return [child.log for child in self._children]

    # --- for the subclasses ---

    def _run(
        self,
        command: Sequence[str],
        *,
        name: str = "server",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """A process of the store; the folder must be on its command line."""
        log = self.folder / f"{name}.log"
        self._children.append(
            Child(command, mark=str(self.folder), log=log, cwd=self.folder, environment=environment, user=self._user)
        )

    def _tool(self, command: Sequence[str], *, text: str = "") -> None:
        """Runs a program of the store to its end."""
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=self.folder, check=False, **account(self._user)
        )
        if done.returncode != 0:
            reason = processes.reason_in(done.stdout + done.stderr, self.log_marks)
            raise StoreError(f"{self.title}: {Path(command[0]).name} failed: {reason}")

    def _ask(self, question: bytes) -> bytes:
        """The beginning of what the server says after it was sent the question."""
        with socket.create_connection((self.host, self.port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(question)
            return connection.recv(4096)

    def _wait_for(self, answers: Callable[[], bool]) -> None:
        """Until that is so; StoreError if a process ends before, or it takes too long."""
        deadline = time.monotonic() + self.start_seconds
        while True:
            for child in self._children:
                if not child.is_running():
                    reason = processes.reason_in(child.log.read_text(errors="replace"), self.log_marks)
                    raise StoreError(f"{self.title} ended as it started: {reason} (see {child.log})")
            with contextlib.suppress(OSError):
                if answers():
                    return
            if time.monotonic() > deadline:
                logs = ", ".join(map(str, self.logs()))
                raise StoreError(f"{self.title} was not ready within {self.start_seconds:.0f} s (see {logs})")
            time.sleep(POLL_SECONDS)

    def _end_all(self) -> None:
        for child in self._children:
            child.kill()

"""Millstream as its users run it: `python -m millstream serve` in a process of its own.

`start` waits for the line `listening on HOST:PORT` on the server's standard output; the server's log (standard error)
is kept in `server.log` beside the data folder. `stop` is SIGTERM, `kill` is SIGKILL, both return the exit status; after
either, `start` (or `restart`) takes up the same data folder again, on a new free port unless one was given.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from support.settings import SETTINGS

SOURCE_FOLDER = Path(__file__).resolve().parent.parent.parent / "src"


class MillstreamServer:
    """A Millstream server process; a context manager."""

    def __init__(self, settings: dict[str, str] | None = None, *, folder: Path | None = None, port: int = 0) -> None:
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="millstream-server-"))
        self.data_folder = self.folder / "data"
        self.log_file = self.folder / "server.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap_servers = ""

    def __enter__(self) -> "MillstreamServer":
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

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, timeout: float = 20) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "millstream", "serve"]
        command += ["--listen", f"127.0.0.1:{self._port}", "--data", str(self.data_folder)]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        path = os.pathsep.join([str(SOURCE_FOLDER), os.environ.get("PYTHONPATH", "")])
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self.bootstrap_servers = self._read_address(time.monotonic() + timeout)

    def _read_address(self, deadline: float) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        output = b""
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self._process.stdout.fileno(), 4096) if ready else b""
            output += chunk
            for line in output.split(b"\n")[:-1]:
                if line.startswith(b"listening on "):
                    return line.removeprefix(b"listening on ").decode()
            if ready and not chunk:
                break
        log = self.log_file.read_text(errors="replace")[-4000:]
        raise RuntimeError(f"Millstream did not become ready; it printed {output!r}; the end of its log:\n{log}")

    def stop(self, timeout: float = 30) -> int:
        """SIGTERM; returns the exit status."""
        return self._end(signal.SIGTERM, timeout)

    def kill(self) -> int:
        """SIGKILL, as if the power went; returns the exit status."""
        return self._end(signal.SIGKILL, 30)

    def restart(self, *, kill: bool = False) -> None:
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    def _end(self, how: signal.Signals, timeout: float) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._process = None
        return status

    def close(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self.stop()
            elif self._process.stdout is not None:
                self._process.stdout.close()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

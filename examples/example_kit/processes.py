"""Parts of an example that are processes of their own: so that they can really be killed, and really work side by side.

A child is a module with a `main`. It tells its parent what happens in JSON lines on standard output (`tell`), and stops
when its standard input ends or SIGTERM comes (`parent_says_stop`): it cannot outlive its parent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from example_kit.errors import ExampleError

STOP_SECONDS = 30.0
EXAMPLES = Path(__file__).resolve().parent.parent
GUARD = """
"$@" </dev/null &
exec >&- 2>&-
read -r _
kill -TERM $!
wait $!
"""


def guarded(command: Sequence[str]) -> list[str]:
    """The command under a shell that gives it SIGTERM when its own standard input ends, as it does when the process at
    the other end is gone: for programs that do not look after that themselves."""
    return ["/bin/sh", "-c", GUARD, "sh", *command]


class Child:
    """A running child. `hear` gets what it tells, on a thread of the child's own; `log` gets its standard error."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        hear: Callable[[dict[str, Any]], None],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        path = os.pathsep.join(filter(None, (str(EXAMPLES), os.environ.get("PYTHONPATH"))))
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {}), "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for the parent, which then stops its children in order
            )
        self._module = module
        self._log = log
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, hear), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def ask_to_stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self, seconds: float = STOP_SECONDS) -> None:
        """Until it has ended by itself and all it told is heard; ExampleError if it failed, or does not end."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ExampleError(f"{self._module} did not stop within {seconds:.0f} s and was killed") from None
        self._reader.join()
        self.ask_to_stop()
        if code:
            said = self._log.read_text(errors="replace").strip().splitlines()
            raise ExampleError(f"{self._module} failed: {said[-1] if said else f'exit code {code}'} (see {self._log})")

    def stop(self) -> None:
        self.ask_to_stop()
        self.wait()

    def kill(self) -> None:
        """SIGKILL, as if its machine had gone. One that has ended already is only cleaned up after."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self.ask_to_stop()

    @staticmethod
    def _read(stream: IO[bytes], hear: Callable[[dict[str, Any]], None]) -> None:
        with stream:
            for line in stream:
                if line.endswith(b"\n"):  # one that was killed may have said half of something
                    hear(json.loads(line))


def tell(**event: Any) -> None:
    """In a child: tells the parent."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def parent_says_stop() -> threading.Event:
    """In a child: set when it is time to stop. Called once, at the beginning."""
    stop = threading.Event()

    def read() -> None:
        while os.read(0, 4096):  # not by sys.stdin, whose lock a process that ends by itself would wait for
            pass
        stop.set()

    threading.Thread(target=read, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda number, frame: threading.Thread(target=stop.set).start())
    return stop

"""A server process that ends when it is told to, and also when the process that started it is gone.

The server gets a session of its own: Ctrl-C at the terminal does not reach it, and one signal ends it with all that it
has started. Beside it runs a shell that waits at the end of a pipe whose other end this process holds; whatever way
this process goes, the kernel closes the pipe, and the shell kills the server's group. (Linux has PR_SET_PDEATHSIG for
that, but it fires when the *thread* that started the child ends, and macOS has nothing.) Before the shell kills it
looks whether the process still has `mark` on its command line, because process ids are used again.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

WATCHER = """
read -r pid && while read -r _; do :; done
said=$(tr '\\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null || ps -o command= -p "$pid" 2>/dev/null)
case "$said" in *"$1"*) kill -s KILL -- "-$pid" ;; esac
"""


class Child:
    """One server process of ours, with its log file."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        mark: str,
        log: Path,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """`mark`: a text on the command line that no other process has. `user`: the account that it runs as."""
        assert any(mark in argument for argument in command), f"{mark!r} is not in {command}"
        self.log = log
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER, "sh", mark],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            with log.open("ab") as out:
                self._server = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd, start_new_session=True,
                    env={**os.environ, **(environment or {})}, **account(user),
                )  # fmt: skip
        except BaseException:
            self._dismiss_watcher()
            raise
        assert self._watcher.stdin is not None
        self._watcher.stdin.write(f"{self._server.pid}\n".encode())
        self._watcher.stdin.flush()

    @property
    def pid(self) -> int:
        return self._server.pid

    def is_running(self) -> bool:
        return self._server.poll() is None

    def request_stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._server.send_signal(signal.SIGCONT)  # one that is paused would not hear it
        self._server.send_signal(number)

    def wait(self, grace: float) -> None:
        """Until it has ended; after the grace it is killed with all that it has started."""
        try:
            self._server.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()
        self._dismiss_watcher()

    def kill(self) -> None:
        """SIGKILL to it and to all that it has started."""
        self.signal_group(signal.SIGKILL)
        self._server.wait()
        self._dismiss_watcher()

    def signal_group(self, number: signal.Signals) -> None:
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _dismiss_watcher(self) -> None:
        self._watcher.kill()
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait()


class Account(TypedDict):
    """The arguments of `subprocess` that say as whom a command runs."""

    user: str | None
    group: int | None
    extra_groups: list[int] | None


def account(user: str | None) -> Account:
    """As that user, with none of our groups left; None: as who we are."""
    if user is None:
        return {"user": None, "group": None, "extra_groups": None}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}

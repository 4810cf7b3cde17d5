"""Processes that may have been started by somebody else: are they still the ones that were meant, how and why they end.

A process id in a file says little, for ids are used again. So whoever asks also gives a text that must be in the
process's command line (the path of its own settings file), and only a process that has it is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

POLL_SECONDS = 0.05
EXEC_POLLS, EXEC_SECONDS = 100, 0.005
JAVA_MARKS = ("Exception: ", "Error: ", " ERROR ")


def command_of(pid: int) -> str | None:
    """The command line of a living process; None if there is none (a zombie is none)."""
    if not Path("/proc/self/cmdline").exists():
        listing = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return None if "<defunct>" in listing.stdout else listing.stdout.strip() or None
    with contextlib.suppress(OSError):
        for _ in range(EXEC_POLLS):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if line:
                return line.replace(b"\0", b" ").decode(errors="replace")
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return None
            time.sleep(EXEC_SECONDS)  # it has no command line while it is replaced by another program
    return None


def is_running(pid: int, mark: str) -> bool:
    """Whether the process lives and has `mark` in its command line."""
    command = command_of(pid)
    return command is not None and mark in command


def end(pids: Collection[int], mark: str, *, grace: float) -> None:
    """SIGTERM to all of them, and SIGKILL to those that are still there after the grace."""
    waiting = [pid for pid in pids if is_running(pid, mark)]
    for pid in waiting:
        _signal(pid, signal.SIGTERM)
    if wait_for_end(waiting, mark, grace):
        return
    for pid in waiting:
        if is_running(pid, mark):
            _signal(pid, signal.SIGKILL)
    wait_for_end(waiting, mark, grace)


def kill(pid: int, mark: str) -> None:
    """SIGKILL, and wait until it is gone."""
    if is_running(pid, mark):
        _signal(pid, signal.SIGKILL)
        wait_for_end([pid], mark, 10)


def wait_for_end(pids: Collection[int], mark: str, seconds: float) -> bool:
    """Whether all of them ended in that time. Children of this process are reaped."""
    deadline = time.monotonic() + seconds
    while True:
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if not any(is_running(pid, mark) for pid in pids):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)


def reason_in(log: str, marks: Sequence[str] = JAVA_MARKS) -> str:
    """Why a process ended, in one line, out of its log: what follows the last of the first mark that is there."""
    lines = log.splitlines()[-400:]
    for mark in marks:
        for line in reversed(lines):
            if mark in line:
                return line.partition(mark)[2].strip()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

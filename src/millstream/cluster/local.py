"""The platforms that run on this machine, so that commands find them without being told an address.

A platform is known by its data folder. In it, `run/platform.json` says what runs (engine, address, process) and
`run/lock` is held, by an advisory lock, by every process of the platform for as long as it lives: whether it runs is
asked of the operating system, and a file left behind by a crash says nothing wrong. The lock is inherited by the
brokers, so a cluster whose `millstream up` was killed still counts as running, which it is. In the user's state home
`millstream/running/` has a symbolic link to each `platform.json`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LOCK_SECONDS = 1.0


class Platform(NamedTuple):
    """One platform that was started on this machine."""

    engine: str
    bootstrap: str
    data: str
    pid: int
    started: float


def running(environ: Mapping[str, str] = os.environ) -> list[Platform]:
    """All that run now and are this user's, the youngest first."""
    found = []
    with contextlib.suppress(OSError):
        for link in _links(environ).iterdir():
            platform = _read(link)
            if platform is not None and is_locked(Path(platform.data)):
                found.append(platform)
    return sorted(found, key=lambda platform: platform.started, reverse=True)


def at(data: Path) -> Platform | None:
    """The one that runs on this data folder."""
    platform = _read(run_folder(data) / "platform.json")
    return platform if platform is not None and is_locked(data) else None


def run_folder(data: Path) -> Path:
    return data / "run"


def take_lock(data: Path) -> int | None:
    """The lock of a data folder as a file descriptor that must stay open; None if another process has it."""
    run_folder(data).mkdir(parents=True, exist_ok=True)
    lock = os.open(run_folder(data) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                return None
            time.sleep(0.05)  # somebody may only be looking whether it is locked


def is_locked(data: Path) -> bool:
    try:
        lock = os.open(run_folder(data) / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def record(platform: Platform, environ: Mapping[str, str] = os.environ) -> None:
    """Says that it runs; the caller holds its lock."""
    file = run_folder(Path(platform.data)) / "platform.json"
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(platform._asdict(), indent=2) + "\n")
    temporary.replace(file)
    link = _link(Path(platform.data), environ)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(file)


def forget(data: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Says that it does not run any more."""
    _link(data, environ).unlink(missing_ok=True)
    (run_folder(data) / "platform.json").unlink(missing_ok=True)


def _read(file: Path) -> Platform | None:
    try:
        return Platform(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _links(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "millstream" / "running"


def _link(data: Path, environ: Mapping[str, str]) -> Path:
    return _links(environ) / hashlib.sha256(str(data).encode()).hexdigest()[:16]

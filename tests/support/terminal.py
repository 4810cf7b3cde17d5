"""A terminal for commands that draw: a process inside it, and what it has drawn."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


@contextmanager
def in_terminal(
    command: Sequence[str], environment: Mapping[str, str], columns: int = 120
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, and the descriptor from which `read_terminal` reads; it is killed at the end if it still runs."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=inside, stdout=inside, stderr=inside,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": str(columns)},
        start_new_session=True,
    )  # fmt: skip
    os.close(inside)
    try:
        yield process, terminal
    finally:
        os.close(terminal)
        if process.poll() is None:
            process.kill()
        process.wait()


def read_terminal(descriptor: int, until: str, seconds: float = 90) -> str:
    """What is drawn until the text appears; all of it up to the end for an empty text."""
    output = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        try:
            chunk = os.read(descriptor, 65536) if ready else b""
        except OSError:  # the other side is closed
            return output.decode()
        output += chunk
        if until and until in output.decode(errors="replace"):
            return output.decode(errors="replace")
    raise AssertionError(f"{until!r} not within {seconds} s in {output.decode(errors='replace')!r}")

"""Ctrl-C for commands that are at work inside a client library.

A signal handler that raises may do so within the library's callbacks, which lose or garble the exception. Here the
first Ctrl-C is only remembered, and raised where the command asks for it; the second one ends the process the usual
way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was stopped by Ctrl-C, as shells have it."""


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Gives a function that raises KeyboardInterrupt if there was a Ctrl-C; to be called every now and then."""
    asked = threading.Event()

    def remember(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def check() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    before = signal.signal(signal.SIGINT, remember)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)

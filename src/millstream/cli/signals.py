"""The word to stop, as a signal brings it: heard at any moment, without a lock.

A signal handler runs in the main thread between any two steps of it, so it must not take a lock that the main thread
may hold just then: `threading.Event.set` would, and hang. What a handler does here is to write one byte to a pipe.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the word of another process, and the end of the terminal."""


class Interrupted(Exception):  # noqa: N818 - not an error: somebody wants it to stop
    """The word came before there was anything that could be stopped in order."""


class Stop:
    """Set by a signal, waited for by the main thread. Until `ready`, a signal raises `Interrupted` instead."""

    def __init__(self) -> None:
        self.is_set = False
        self.count = 0
        """How many times the word came: who repeats it is in a hurry."""
        self._ready = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        for number in STOPPING:
            signal.signal(number, self._handle)

    def ready(self) -> None:
        self._ready = True

    def wait(self, seconds: float) -> bool:
        """Whether the word has come; waits so long for it."""
        if not self.is_set:
            select.select([self._read], [], [], seconds)
        return self.is_set

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        self.count += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")
        if not self._ready:
            self._ready = True  # once: what is cleaned up now is not interrupted again
            raise Interrupted

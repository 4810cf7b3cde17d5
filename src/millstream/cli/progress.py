"""How far a command is: a line on the terminal, rewritten a few times a second on standard error; else nothing."""

from __future__ import annotations

import sys
import time

REDRAW_SECONDS = 0.1


class Progress:
    """`with Progress("producing") as progress: progress.records(12, 3400)`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = sys.stderr.isatty()
        self._start = self._next = time.monotonic()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def records(self, count: int, size: int) -> None:
        """So many records and bytes are done; nobody knows of how many."""
        if self._due():
            seconds = max(time.monotonic() - self._start, 1e-6)
            self._write(f"{self._what} {count:,} records, {size / 1e6:,.1f} MB, {count / seconds:,.0f}/s")

    def of(self, count: int, total: int) -> None:
        """So many of a known number are done."""
        if self._due():
            share = min(count / total, 1.0) if total else 1.0
            bar = "━" * round(30 * share)
            self._write(f"{self._what} {bar:<30} {share:4.0%}  {count:,} of {total:,}")

    def _due(self) -> bool:
        if not self._shown or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + REDRAW_SECONDS
        return True

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

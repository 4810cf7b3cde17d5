"""Whether a server answers, asked again and again, and said when that changes: so that whoever watches knows why work
waits, and for what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient

from example_kit.clients import patient
from example_kit.run import Run

EVERY = 0.5
ANSWER_SECONDS = 3.0
"""How long an answer may take; on a busy machine even a healthy server is slow at times."""


@contextmanager
def watched(run: Run, title: str, ask: Callable[[], object]) -> Iterator[None]:
    """Says when the server is away and when it is back. `ask` raises if it does not answer within `ANSWER_SECONDS`."""
    stop = threading.Event()

    def watch() -> None:
        away: float | None = None
        while not stop.is_set():
            asked = time.monotonic()
            try:
                ask()
            except Exception:  # of any kind: each server's client has its own
                if away is None and not stop.is_set():
                    away = asked
                    run.say(f"{title} does not answer: what needs it waits, and tries again", "red")
            else:
                if away is not None:
                    run.say(f"{title} answers again, after {time.monotonic() - away:.0f} s; the work goes on", "green")
                    away = None
            stop.wait(EVERY)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def watched_cluster(run: Run) -> Iterator[None]:
    """The same for the run's cluster."""
    admin = AdminClient({**patient(run.bootstrap), "log_level": 0})
    with watched(run, "the cluster", lambda: admin.list_topics(timeout=ANSWER_SECONDS)):
        yield

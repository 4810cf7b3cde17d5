"""Whether a server answers, asked again and again, and said when that changes: so that whoever watches knows why work
waits, and for what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient

from example_kit.background import in_background
from example_kit.clients import quiet

Say = Callable[[str, str], None]
"""Gets a sentence and its style."""
EVERY = 0.5
ANSWER_SECONDS = 3.0
"""How long an answer may take; on a busy machine even a healthy server is slow at times."""


@contextmanager
def watched(say: Say, title: str, ask: Callable[[], object]) -> Iterator[None]:
    """Says when the server is away and when it is back. `ask` raises if it does not answer within `ANSWER_SECONDS`."""

    def watch(stop: threading.Event) -> None:
        away: float | None = None
        while not stop.is_set():
            asked = time.monotonic()
            try:
                ask()
            except Exception:  # of any kind: each server's client has its own
                if away is None and not stop.is_set():
                    away = asked
                    say(f"{title} does not answer: what needs it waits, and tries again", "red")
            else:
                if away is not None:
                    say(f"{title} answers again, after {time.monotonic() - away:.0f} s; the work goes on", "green")
                    away = None
            stop.wait(EVERY)

    with in_background(watch):
        yield


@contextmanager
def watched_cluster(say: Say, bootstrap: str) -> Iterator[None]:
    """The same for a cluster."""
    admin = AdminClient(quiet(bootstrap))
    with watched(say, "the cluster", lambda: admin.list_topics(timeout=ANSWER_SECONDS)):
        yield

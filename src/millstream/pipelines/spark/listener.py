"""Spark's events about its queries, handed to whoever runs them.

Spark calls from a thread of its own, which must not wait for a query: events are put into a queue, and only what a
waiting thread needs to hear at once (a batch is done) is told on the spot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class Listener(StreamingQueryListener):
    """Calls `on_progress(run id, progress)` for every batch and `on_end(run id)` for every query that ended."""

    def __init__(self, on_progress: Callable[[str, Mapping[str, Any]], None], on_end: Callable[[str], None]) -> None:
        self._on_progress = on_progress
        self._on_end = on_end

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Whoever started it knows."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        self._on_progress(str(event.progress.runId), json.loads(event.progress.json))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing came."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        self._on_end(str(event.runId))

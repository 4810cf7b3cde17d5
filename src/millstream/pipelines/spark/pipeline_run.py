"""One pipeline while it runs: its queries together, its progress for others, its failures and fresh starts.

A query that fails is started again after a pause that grows, unless a retry cannot help; a pipeline whose queries
make no progress for `GIVE_UP_SECONDS` has failed. What is done is committed to the pipeline's consumer group: the
smallest offset of all queries, so that its lag in any Kafka tool is what is still to do.
"""

from __future__ import annotations

import threading
import time

from millstream.cluster.errors import ClusterError
from millstream.pipelines import offsets
from millstream.pipelines.checkpoints import behind
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineFolder
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.failures import Failure, explain
from millstream.pipelines.spark.plan import as_micro_batch
from millstream.pipelines.spark.query import Query
from millstream.pipelines.spark.start import make_topics, plans_of, source_cluster
from millstream.pipelines.status import PipelineStatus, State

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
GIVE_UP_SECONDS = 300.0


class PipelineRun:
    """A pipeline from its start to its end."""

    def __init__(self, context: Context, folder: PipelineFolder, hurry: threading.Event) -> None:
        """`hurry`: once it is set, stopping does not wait for the end of a batch."""
        self._context = context
        self._folder = folder
        self._hurry = hurry
        self._queries: list[Query] = []
        self._group: offsets.GroupPositions | None = None
        self._retry_at: dict[str, float] = {}
        self._pause = FIRST_PAUSE
        self._failing_since: float | None = None
        self.state: State = "starting"
        self.error: str | None = None

    @property
    def name(self) -> str:
        return self._context.pipeline.name

    @property
    def ended(self) -> bool:
        return self.state in ("stopped", "failed")

    def start(self) -> None:
        """Plans and starts all queries; a mistake makes this pipeline fail, and no other."""
        self.state, self.error = "starting", None
        try:
            make_topics(self._context)
            self._queries = [
                Query(plan, query, self._folder.checkpoint(query.name))
                for query, plan in plans_of(self._context, self._folder)
            ]
            self._group = offsets.GroupPositions(source_cluster(self._context), self._context.pipeline.group)
            for query in self._queries:
                query.start()
            self.state = "running"
        except Exception as error:
            self._fail(error if isinstance(error, ClusterError) else PipelineError(explain(error).message))

    def query_of(self, run_id: str) -> Query | None:
        return next((query for query in self._queries if query.id == run_id), None)

    def progressed(self, query: Query, limit: int | None) -> None:
        """A batch is done: its offsets become visible to others, and a new limit takes a fresh start of the query."""
        self._failing_since, self._pause = None, FIRST_PAUSE
        self.error = None
        self._folder.clear_start_override()  # from the first checkpoint on, that says where to go on
        self._commit()
        if limit is not None and self.state == "running" and query.is_active:
            query.stop(self._hurry)
            query.start()
            self._commit()

    def look_after(self, now: float) -> None:
        """Sees whether queries have ended, and why."""
        if self.state not in ("running", "restarting"):
            return
        for query in self._queries:
            if query.is_active:
                continue
            if query.query.name in self._retry_at:
                if now >= self._retry_at[query.query.name]:
                    del self._retry_at[query.query.name]
                    self._again(query)
                continue
            error = query.error()
            if error is not None:
                self._failed(query, explain(error), now)
        if self.state == "running" and all(query.finished() for query in self._queries):
            self.stop()

    def stop(self) -> None:
        if self.ended:
            return
        self.state = "stopping"
        for query in self._queries:
            query.stop(self._hurry)
        self._close()
        self.state = "stopped"

    def restart(self) -> None:
        self.stop()
        self.start()

    def status(self) -> PipelineStatus:
        return PipelineStatus(self.name, self.state, self.error, tuple(query.status for query in self._queries))

    def _again(self, query: Query) -> None:
        try:
            query.start()
            self.state = "running" if not self._retry_at else "restarting"
        except Exception as error:
            self._failed(query, explain(error), time.monotonic())

    def _failed(self, query: Query, failure: Failure, now: float) -> None:
        if failure.real_time_refused and query.query.mode == "real-time":
            query.query = as_micro_batch(query.query, f"Spark refuses real-time mode: {failure.message}")
            self._again(query)
            return
        self._failing_since = self._failing_since or now
        if failure.data_loss:
            self._fail(PipelineError(self._what_is_gone(failure)))
        elif failure.final or now - self._failing_since > GIVE_UP_SECONDS:
            self._fail(PipelineError(failure.message))
        else:
            self.state, self.error = "restarting", failure.message
            self._retry_at[query.query.name] = now + self._pause
            self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def _what_is_gone(self, failure: Failure) -> str:
        positions = behind(query.positions for query in self._queries)
        gaps = offsets.gone(source_cluster(self._context), positions) if positions else []
        return offsets.gone_text(self.name, gaps) if gaps else failure.message

    def _commit(self) -> None:
        if any(query.query.sinks and not query.positions for query in self._queries):
            return  # what the others have read is not done as long as one has not finished a batch
        done = behind(query.positions for query in self._queries)
        if done and self._group is not None:
            self._group.commit(done)

    def _fail(self, error: Exception) -> None:
        at_once = threading.Event()
        at_once.set()
        for query in self._queries:
            query.stop(at_once)
        self._close()
        self.state, self.error = "failed", str(error)

    def _close(self) -> None:
        if self._group is not None:
            self._commit()
            self._group.close()
            self._group = None

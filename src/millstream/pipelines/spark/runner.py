"""Runs pipelines, several in one Spark session, until they end or are stopped.

One thread does everything that changes a pipeline: it takes events out of a queue (a batch is done, a query ended,
stop), looks into the pipelines' folders for requests (`millstream pipeline stop`), and tells whoever watches. A
pipeline that fails does not disturb the others.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from millstream.cluster.connection import Connection
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineFolder, PipelineHome
from millstream.pipelines.metrics import PipelineMetrics
from millstream.pipelines.spark.context import Context
from millstream.pipelines.spark.listener import Listener
from millstream.pipelines.spark.pipeline_run import PipelineRun
from millstream.pipelines.spark.session import running_session
from millstream.pipelines.spark.start import real_time_slots
from millstream.pipelines.status import Snapshot

LOOK_SECONDS = 0.5
RESERVED = ("metastore", "warehouse")


class Runner:
    """Some pipelines in one process."""

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        connection: Connection,
        home: PipelineHome,
        *,
        master: str | None = None,
        checkpoints: str | None = None,
        metrics: tuple[str, int] | None = None,
        memory: str = "1g",
        conf: Mapping[str, str] | None = None,
        once: bool = False,
        session: SparkSession | None = None,
    ) -> None:
        """`session`: one that is there already, which stays; otherwise the runner has its own."""
        self._pipelines = [_once(pipeline) for pipeline in pipelines] if once else pipelines
        self._connection = connection
        self._home = home
        self._master = master
        self._checkpoints = checkpoints
        self._metrics_address = metrics
        self._memory = memory
        self._conf = conf or {}
        self._session = session
        self._runs: dict[str, PipelineRun] = {}
        self._folders: dict[str, PipelineFolder] = {}
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._hurry = threading.Event()

    def run(self, on_change: Callable[[Snapshot], None] = lambda _: None) -> int:
        """Until all have ended; the exit code: 0 if none has failed."""
        self._connection.check()
        with contextlib.ExitStack() as stack:
            for pipeline in self._pipelines:
                self._folders[pipeline.name] = stack.enter_context(self._claimed(pipeline))
            metrics = stack.enter_context(PipelineMetrics(self._metrics_address))
            spark = stack.enter_context(self._spark())
            listener = Listener(self._on_progress, lambda _: self._events.put(lambda: None))
            spark.streams.addListener(listener)
            stack.callback(spark.streams.removeListener, listener)
            self._start_all(spark)
            try:
                while not all(run.ended for run in self._runs.values()):
                    self._tell(on_change, metrics)
                    self._take_event()
                    for run in self._runs.values():
                        self._look_after(run)
            finally:
                self._hurry.set()
                for run in self._runs.values():
                    run.stop()
                self._tell(on_change, metrics)
        return 1 if any(run.state == "failed" for run in self._runs.values()) else 0

    def stop(self, *, now: bool = False) -> None:
        """Asks all pipelines to stop, from any thread; `now`: not waiting for the end of their batches."""
        if now:
            self._hurry.set()
        self._events.put(self._stop_all)

    def snapshot(self) -> Snapshot:
        return [run.status() for run in self._runs.values()]

    @contextlib.contextmanager
    def _claimed(self, pipeline: Pipeline) -> Iterator[PipelineFolder]:
        """The pipeline's folder, which no other process may have."""
        if pipeline.name in RESERVED:
            raise PipelineError(f"a pipeline cannot be called {pipeline.name}: that folder of the home is Spark's")
        folder = self._home.pipeline(pipeline.name)
        lock = folder.acquire()
        if lock is None:
            raise PipelineError(f"pipeline {pipeline.name} runs already: `millstream pipeline stop {pipeline.name}`")
        try:
            folder.begin(
                pid=os.getpid(),
                host=socket.gethostname(),
                file=None if pipeline.place is None else pipeline.place.file,
                argv=sys.argv,
                master=self._master,
                bootstrap=self._connection.bootstrap,
                checkpoints=self._checkpoints,
            )
            yield folder
        finally:
            os.close(lock)

    def _spark(self) -> contextlib.AbstractContextManager[SparkSession]:
        slots = 0 if self._session is not None else real_time_slots(self._pipelines, self._connection)
        return running_session(
            self._pipelines,
            self._home.root,
            self._session,
            master=self._master,
            real_time_slots=slots,
            memory=self._memory,
            conf=self._conf,
        )

    def _start_all(self, spark: SparkSession) -> None:
        for pipeline in self._pipelines:
            folder = self._folders[pipeline.name]
            context = Context(spark, pipeline, self._connection, folder.path)
            self._runs[pipeline.name] = PipelineRun(context, folder, self._hurry)
        for run in self._runs.values():
            run.start()

    def _on_progress(self, run_id: str, progress: Mapping[str, Any]) -> None:
        for run in self._runs.values():
            query = run.query_of(run_id)
            if query is not None:
                limit = query.progressed(progress)
                self._events.put(lambda run=run, query=query, limit=limit: run.progressed(query, limit))  # type: ignore[misc]

    def _take_event(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._events.get(timeout=LOOK_SECONDS)()

    def _look_after(self, run: PipelineRun) -> None:
        run.look_after(time.monotonic())
        request = self._folders[run.name].take_request()
        if request == "stop":
            run.stop()
        elif request == "restart":
            run.restart()

    def _stop_all(self) -> None:
        for run in self._runs.values():
            run.stop()

    def _tell(self, on_change: Callable[[Snapshot], None], metrics: PipelineMetrics) -> None:
        snapshot = self.snapshot()
        for status in snapshot:
            self._folders[status.name].record(status)
        metrics.update(snapshot)
        on_change(snapshot)


def _once(pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"mode": "once"})

"""`millstream` with a runner that needs no Spark: it says that its pipelines run, and stops when it is told to.

    python fake_runner.py pipeline run FILE ...

A pipeline whose name begins with `bad` fails; one that begins with `slow` ends only when it must at once; with one that
begins with `odd` the runner does not start at all.
"""

import os
import queue
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any
from unittest import mock

from millstream.cli import main
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.status import ENDED, PipelineStatus, QueryStatus, Snapshot


class FakeRunner:
    """As the real one, seen from the command line."""

    def __init__(self, pipelines: Sequence[Pipeline], connection: Any, home: PipelineHome, **options: Any) -> None:
        self._folders = {pipeline.name: home.pipeline(pipeline.name) for pipeline in pipelines}
        self._files = {pipeline.name: pipeline.place.file for pipeline in pipelines if pipeline.place is not None}
        self._words: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._bootstrap = connection.bootstrap
        self._options = options
        self._states = {name: PipelineStatus(name, "starting") for name in self._folders}

    def run(self, on_change: Callable[[Snapshot], None]) -> int:
        locks = [folder.acquire() for folder in self._folders.values()]
        if None in locks:
            raise PipelineError("runs already")
        if any(name.startswith("odd") for name in self._folders):
            raise PipelineError("Spark does not start (no Java)")
        for name, folder in self._folders.items():
            folder.begin(
                pid=os.getpid(), host="here", file=self._files[name], argv=sys.argv, master=self._options["master"],
                bootstrap=self._bootstrap, checkpoints=self._options["checkpoints"],
            )  # fmt: skip
            query = QueryStatus("main", "micro-batch", "a table takes batches", 0, 12, 3.5, 4, 0.25)
            state, error = ("failed", "no column ip") if name.startswith("bad") else ("running", None)
            self._states[name] = PipelineStatus(name, state, error, (query,))  # type: ignore[arg-type]
        self._tell(on_change)
        while not all(status.state in ENDED for status in self._states.values()):
            try:
                self._stop(now=self._words.get(timeout=0.02))
            except queue.Empty:
                for name, folder in self._folders.items():
                    if folder.take_request() == "stop":
                        self._states[name] = self._states[name]._replace(state="stopped")
            self._tell(on_change)
        for lock in locks:
            os.close(lock)  # type: ignore[arg-type]
        return int(any(status.state == "failed" for status in self._states.values()))

    def stop(self, *, now: bool = False) -> None:
        self._words.put(now)

    def _stop(self, *, now: bool) -> None:
        for name, status in self._states.items():
            if status.state not in ENDED:
                waits = name.startswith("slow") and not now
                self._states[name] = status._replace(state="stopping" if waits else "stopped")

    def _tell(self, on_change: Callable[[Snapshot], None]) -> None:
        for name, folder in self._folders.items():
            folder.record(self._states[name])
        on_change(list(self._states.values()))


if __name__ == "__main__":
    runner: Any = ModuleType("millstream.pipelines.spark.runner")
    runner.Runner = FakeRunner
    with (
        mock.patch.dict(sys.modules, {runner.__name__: runner}),
        mock.patch("millstream.cli.pipeline_run._fetch_jars", return_value=None),
    ):
        main()

"""`millstream pipeline check` and `run`: what pipelines would do, and doing it, here or on a Spark cluster.

`run` stays in the foreground and shows what goes on (`pipeline_view`). The first Ctrl-C (or SIGTERM) stops the
pipelines cleanly, each query after the batch it is at; the second does not wait. The runner works in a thread of its
own: the main thread hears signals and draws. `run --detach` starts the same in the background, in a session of its own,
and returns when all pipelines run. Inside `spark-submit`, `run` takes the session that it finds there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.options import Bootstrap, Context, Json
from millstream.cli.output import done, fail, print_json
from millstream.cli.pipeline_common import (
    Checkpoints,
    Files,
    Home,
    Master,
    Memory,
    Only,
    SparkSettings,
    cluster_arguments,
    home_at,
    need_spark,
    read_pipelines,
    spark_errors,
    spark_settings,
)
from millstream.cli.pipeline_view import LineView, LiveView, view
from millstream.cli.serve import address
from millstream.cli.signals import Stop
from millstream.cluster.connection import Connection
from millstream.cluster.contexts import resolve
from millstream.pipelines.status import ENDED, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.pipelines.description.pipeline import Pipeline
    from millstream.pipelines.home import PipelineFolder, PipelineHome

COMMAND = (sys.executable, "-m", "millstream")
SHOW_SECONDS = 0.5
LOOK_SECONDS = 0.1
DETACH_SECONDS = 180.0
INTERRUPTED = 130
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Spark sets this for a program that `spark-submit` runs."""

Metrics = Annotated[
    str, typer.Option("--metrics", metavar="HOST:PORT", help="Where Prometheus finds /metrics, or 'off'.")
]
Once = Annotated[bool, typer.Option("--once", help="Process all that is there now, then stop.")]


def check(
    files: Files,
    only: Only = None,
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="Only what can be told without Spark: mistakes in the files.")
    ] = False,
    home: Home = None,
    master: Master = None,
    memory: Memory = "1g",
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Say what is wrong with pipelines, or how they would run: columns, plan, mode, and why. Nothing is run."""
    from millstream.pipelines.description.summary import describe

    pipelines = read_pipelines(files, only, json=json)
    if no_spark:
        facts = [{"pipeline": pipeline.name, "description": describe(pipeline)} for pipeline in pipelines]
        if json:
            print_json(facts)
        else:
            print("\n\n".join("\n".join(describe(pipeline)) for pipeline in pipelines))
        return
    need_spark()
    connection = resolve(bootstrap, context)
    connection.check()
    from millstream.pipelines.spark.check import check as check_on_spark

    with spark_errors():
        _fetch_jars()
        found = check_on_spark(pipelines, connection, home_at(home), master=master, memory=memory)
    if json:
        print_json([_checked_json(checked) for checked in found])
    else:
        print("\n\n".join("\n".join(_checked_lines(checked, describe(checked.pipeline))) for checked in found))
    wrong = [checked.pipeline.name for checked in found if checked.error]
    if wrong:
        fail(f"{', '.join(wrong)} cannot run like this", 2)


def run(
    files: Files,
    only: Only = None,
    master: Master = None,
    home: Home = None,
    checkpoints: Checkpoints = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when they run; they go on in the background.")
    ] = False,
    once: Once = False,
    metrics: Metrics = "off",
    memory: Memory = "1g",
    set_: SparkSettings = None,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Run pipelines, all in one Spark session, and show how they are until Ctrl-C stops them cleanly."""
    need_spark()
    conf = spark_settings(set_)
    metrics_at = None if metrics == "off" else address(metrics, "--metrics")
    pipelines = read_pipelines(files, only, json=json)
    connection = resolve(bootstrap, context)
    connection.check()
    root = home_at(home).root
    arguments = ["--home", str(root), *cluster_arguments(connection, context), "--memory", memory, "--metrics", metrics]
    arguments += [part for name, value in conf.items() for part in ("--set", f"{name}={value}")]
    arguments += ["--master", master] if master else []
    arguments += ["--checkpoints", _from_anywhere(checkpoints)] if checkpoints else []
    where = home_at(home, [*arguments, *(["--once"] if once else [])])
    for pipeline in pipelines:
        _refuse_if_it_runs(where.pipeline(pipeline.name))
    with spark_errors():
        if SUBMITTED not in os.environ:
            _fetch_jars()
        if detach:
            again = [*map(str, files), *(part for name in only or () for part in ("--only", name)), *arguments]
            start_detached(where, [p.name for p in pipelines], again + (["--once"] if once else []), json=json)
            return
        options = {"master": master, "checkpoints": checkpoints, "metrics": metrics_at, "memory": memory, "conf": conf}
        raise typer.Exit(_foreground(pipelines, connection, where, {**options, "once": once}, json=json))


# --- in the foreground ---


def _foreground(
    pipelines: Sequence[Pipeline], connection: Connection, home: PipelineHome, options: dict[str, Any], *, json: bool
) -> int:
    from millstream.pipelines.spark.runner import Runner

    session = _submitted_session(pipelines, home, options["master"]) if SUBMITTED in os.environ else None
    stop = Stop()  # after Spark, which has a mind of its own about Ctrl-C
    stop.ready()
    runner = Runner(pipelines, connection, home, session=session, **options)
    with view(json=json, plain=session is not None) as shown:
        work = _Work(lambda: runner.run(shown.update))
        _watch(work, runner, stop, shown, pipelines)
    if session is not None:
        session.stop()
    return work.result()


def _watch(work: _Work, runner: Any, stop: Stop, shown: LiveView | LineView, pipelines: Sequence[Pipeline]) -> None:
    """Until the work is done; hands on what signals say."""
    heard, next_show = 0, 0.0
    while not work.wait(LOOK_SECONDS):
        if stop.count > heard:
            heard += 1
            if heard > 2:
                os._exit(INTERRUPTED)  # it was said three times: nothing is waited for
            shown.say(_waiting_for(shown.snapshot, pipelines) if heard == 1 else "stopping at once")
            runner.stop(now=heard > 1)
        if time.monotonic() >= next_show:
            next_show = time.monotonic() + SHOW_SECONDS
            shown.show()


class _Work:
    """A function in a thread of its own; what it returns or raises comes out of `result`."""

    def __init__(self, function: Callable[[], int]) -> None:
        self._function = function
        self._value = 1
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pipelines")
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it is done; waits so long for it."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> int:
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:  # handed to the main thread
            self._error = error


def _waiting_for(snapshot: Snapshot, pipelines: Sequence[Pipeline]) -> str:
    """What the stop waits for, by the modes of the queries."""
    lengths = {pipeline.name: pipeline.real_time_batch for pipeline in pipelines}
    batches, real_time = [], 0.0
    for pipeline in snapshot:
        for query in pipeline.queries:
            if pipeline.state not in ENDED and query.mode == "real-time":
                real_time = max(real_time, lengths.get(pipeline.name, 0.0))
            elif pipeline.state not in ENDED:
                batches.append(f"{pipeline.name}/{query.name}")
    parts = [f"the batches of {', '.join(batches)}"] if batches else []
    parts += [f"the end of real-time batches (at most {real_time:.0f} s)"] if real_time else []
    waits = f", waiting for {' and '.join(parts)}" if parts else ""
    return f"stopping{waits}; once more Ctrl-C stops at once, and what was not finished is done again later"


def _submitted_session(pipelines: Sequence[Pipeline], home: PipelineHome, master: str | None) -> SparkSession:
    """The session of the `spark-submit` around us, with its settings and jars."""
    from pyspark import SparkConf, SparkContext

    from millstream.pipelines.spark.session import start_session

    SparkContext._ensure_initialized()  # before that nobody knows what was submitted
    return start_session(pipelines, [], home.root, master=master, conf=dict(SparkConf().getAll()))


# --- in the background ---


def start_detached(home: PipelineHome, names: Sequence[str], arguments: Sequence[str], *, json: bool) -> None:
    """Runs `millstream pipeline run ARGUMENTS` in a session of its own, and returns when these pipelines run."""
    folders = [home.pipeline(name) for name in names]
    log = folders[0].log
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [*COMMAND, "pipeline", "run", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )  # fmt: skip
    deadline = time.monotonic() + DETACH_SECONDS
    while not _all_began(folders, process.pid) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    if not _all_began(folders, process.pid) and process.poll() is None:
        process.terminate()
        process.wait()
        fail(f"it did not run within {DETACH_SECONDS:.0f} s and has been stopped (see {log})")
    _tell_begun(folders, process, log, json=json)


def _all_began(folders: Sequence[PipelineFolder], pid: int) -> bool:
    runs = [folder.run() for folder in folders]
    return all(run is not None and run.pid == pid and run.state not in ("starting",) for run in runs)


def _tell_begun(folders: Sequence[PipelineFolder], process: subprocess.Popen[bytes], log: Path, *, json: bool) -> None:
    runs = {folder.name: run for folder in folders if (run := folder.run()) is not None and run.pid == process.pid}
    if process.poll() and not runs:
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        fail(said[-1].removeprefix("millstream: ") if said else "it ended at once", process.returncode or 1)
    process.returncode = process.returncode or 0  # it lives on without us; Popen need not warn
    failed = {name: run.error for name, run in runs.items() if run.state == "failed"}
    rows = [{"pipeline": name, "state": run.state, "error": run.error} for name, run in runs.items()]
    words = ", ".join(f"{row['pipeline']} is {row['state']}" for row in rows)
    done(f"{words} (process {process.pid}, log {log})", json=json, pid=process.pid, log=str(log), pipelines=rows)
    if failed:
        fail("; ".join(f"{name}: {error}" for name, error in failed.items()))


def _refuse_if_it_runs(folder: PipelineFolder) -> None:
    if folder.is_held():
        run = folder.run()
        process = f" (process {run.pid} on {run.host})" if run is not None else ""
        fail(f"pipeline {folder.name} runs already{process}: `millstream pipeline stop {folder.name}` stops it")


def _fetch_jars() -> None:
    """Here, where somebody sees the progress bar."""
    from millstream.cli import live
    from millstream.pipelines import jars

    with live.starting() as show:
        jars.fetch(progress=show)


def _from_anywhere(checkpoints: str) -> str:
    from millstream.pipelines.description.fields import is_local

    return str(Path(checkpoints).absolute()) if is_local(checkpoints) else checkpoints


# --- what check found ---


def _checked_lines(checked: Any, description: Sequence[str]) -> list[str]:
    lines = list(description)
    if checked.error:
        return [*lines, "", f"  wrong       {checked.error}"]
    lines += ["", f"  columns     {checked.schema}"]
    for query in checked.queries:
        sinks = ", ".join(str(number + 1) for number in query.sinks)
        serves = f" for sink {sinks}" if sinks else ""
        lines.append(f"  query       {query.name}: {query.mode}{serves} ({query.why})")
    return [*lines, "  plan", *(f"    {line}" for line in checked.plan.rstrip().splitlines())]


def _checked_json(checked: Any) -> dict[str, Any]:
    return {
        "pipeline": checked.pipeline.name,
        "error": checked.error,
        "columns": checked.schema,
        "queries": [
            {"name": query.name, "mode": query.mode, "why": query.why, "sinks": list(query.sinks)}
            for query in checked.queries
        ],
        "plan": checked.plan,
    }

"""`millstream pipeline ...`: pipelines on Spark checked, run, watched, stopped, reset, verified; their dead letters.

Which pipelines there are and how they are is read from their home on this machine (`millstream.pipelines.home`); what a
running one shall do is asked of it there. Nothing here imports Spark before it is needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from millstream.cli import pipeline_dead_letters, pipeline_records, pipeline_run, pipeline_submit
from millstream.cli.options import Bootstrap, Context, Json, command_app
from millstream.cli.output import PIPE_WIDTH, Column, done, fail, print_json, show_rows, show_values, warn
from millstream.cli.pipeline_common import Home, Name, cluster_of, home_at, known, need_spark
from millstream.cli.pipeline_view import picture_of
from millstream.cli.units import duration_text
from millstream.cluster.connection import Connection
from millstream.cluster.errors import ClusterError
from millstream.cluster.groups import total_lags
from millstream.pipelines.home import PipelineFolder, Run
from millstream.pipelines.status import ENDED, PipelineStatus

app = command_app("Pipelines on Spark: check, run, submit, list, status, stop, restart, reset, verify, dead-letters.")

STOP_SECONDS = 300.0
RESTART_SECONDS = 300.0
PATIENT_SECONDS = 2.0
"""After this a person wants to know what is waited for."""
LOOK_SECONDS = 0.05
LIST = (
    Column("pipeline", "pipeline", whole=True),
    Column("state", "state", whole=True),
    Column("since", "since", number=True),
    Column("queries", "queries"),
    Column("rows", "rows", number=True),
    Column("lag", "lag", number=True),
    Column("dead_letters", "dead letters", number=True),
    Column("file", "file"),
)

app.command("check")(pipeline_run.check)
app.command("run")(pipeline_run.run)
app.command("submit")(pipeline_submit.submit)


@app.command("list", no_args_is_help=False)
def list_(home: Home = None, json: Json = False) -> None:
    """List the pipelines that were run on this machine, and how they are."""
    rows = []
    for folder in home_at(home).all():
        run = folder.run()
        if run is None:
            continue
        figures = folder.progress() or PipelineStatus(folder.name, "stopped")
        lags = [query.lag for query in figures.queries if query.lag is not None]
        seconds = max(0.0, time.time() - run.started)
        rows.append(
            {
                "pipeline": folder.name,
                "state": folder.state(),
                "since": round(seconds, 1) if json else duration_text(int(seconds * 1000)),
                "queries": [f"{query.name} ({query.mode})" for query in run.queries],
                "rows": sum(query.rows for query in figures.queries),
                "lag": max(lags, default=None),
                "dead_letters": sum(query.dead_letters for query in figures.queries),
                "file": run.file,
            }
        )
    show_rows(rows, LIST, json=json, empty="no pipelines (`millstream pipeline run FILE` runs one)")


@app.command()
def status(
    name: Name, home: Home = None, bootstrap: Bootstrap = None, context: Context = None, json: Json = False
) -> None:
    """Show one pipeline: its state, its queries with their figures, its lag as the cluster sees it."""
    folder = known(name, home_at(home))
    run = folder.run()
    assert run is not None
    state, figures = folder.state(), folder.progress()
    lag = _group_lag(cluster_of(folder, bootstrap, context), f"millstream-{name}")
    facts = _facts(folder, run, state, lag)
    if json:
        queries = [] if figures is None else [query._asdict() for query in figures.queries]
        modes = [query._asdict() for query in run.queries]
        print_json({**facts, "started": run.started, "argv": run.argv, "queries": queries or modes})
        return
    show_values({label: value for label, value in facts.items() if value is not None}, json=False)
    for query in run.queries:
        print(f"{query.name}: {query.mode} ({query.why})")
    if figures is not None and figures.queries:
        from rich.console import Console

        print()
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        shown: Any = figures._replace(state=state, error=None)  # type: ignore[arg-type]  # killed is no state of a runner
        Console(width=width, highlight=False).print(picture_of([shown]))


@app.command()
def stop(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="The pipelines.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All that run here.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Stop pipelines cleanly: each query ends after the batch it is at."""
    where = home_at(home)
    if bool(names) == all_:
        fail("say which pipelines: NAME..., or --all", 2)
    folders = (
        [folder for folder in where.all() if folder.is_running()] if all_ else [known(n, where) for n in names or ()]
    )
    for folder in folders:
        if not folder.is_running():
            fail(f"pipeline {folder.name} does not run ({folder.state()})", 4)
    for folder in folders:
        folder.request("stop")
    start = time.monotonic()
    for folder in folders:
        ended = partial(_has_ended, folder)
        if not _wait(ended, start + PATIENT_SECONDS):
            warn(_waiting_for(folder))
        if not _wait(ended, start + STOP_SECONDS):
            run = folder.run()
            fail(f"{folder.name} has not stopped within {STOP_SECONDS:.0f} s; its process is {run.pid if run else '?'}")
    stopped = [folder.name for folder in folders]
    done(f"stopped {', '.join(stopped)}" if stopped else "no pipeline runs here", json=json, stopped=stopped)


@app.command()
def restart(name: Name, home: Home = None, json: Json = False) -> None:
    """Restart a pipeline where it left off: in its process if that runs, else in the background as it was run last."""
    folder = known(name, home_at(home))
    run = folder.run()
    assert run is not None
    if not folder.is_held():
        if run.arguments is None or run.file is None:
            fail(f"{name} was not started by `millstream pipeline run`: start it the way it was")
        if not Path(run.file).exists():
            fail(f"{name} was run from {run.file}, which is not there any more", 4)
        need_spark()
        arguments = [run.file, "--only", name, *run.arguments]
        pipeline_run.start_detached(home_at(home), [name], arguments, json=json)
        return
    folder.request("restart")
    deadline = time.monotonic() + RESTART_SECONDS
    if not _wait(lambda: folder.request_done() or not folder.is_held(), deadline):
        fail(f"{name} was not restarted within {RESTART_SECONDS:.0f} s; its process is {run.pid}")
    run = folder.run()
    if run is not None and run.error and run.state in ENDED:
        fail(f"{name} failed: {run.error}")
    done(f"restarted {name}", json=json, pipeline=name, state=folder.state())


app.command("reset")(pipeline_records.reset)
app.command("verify")(pipeline_records.verify)
app.command("dead-letters")(pipeline_dead_letters.dead_letters)


def _facts(folder: PipelineFolder, run: Run, state: str, lag: int | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "pipeline": folder.name,
        "state": state,
        "error": run.error,
        "process": f"{run.pid} on {run.host}" if folder.is_held() else None,
        "file": run.file,
        "cluster": run.bootstrap,
        "spark": run.master or "this machine",
        "checkpoints": folder.checkpoint_root(),
        "group": f"millstream-{folder.name}",
        "group_lag": lag,
    }
    if folder.is_held():
        facts["last_sign"] = duration_text(int(max(0.0, time.time() - folder.last_sign()) * 1000))
    return facts


def _group_lag(connection: Connection, group: str) -> int | None:
    """What every Kafka tool shows; None if the cluster cannot be asked, or knows no such group."""
    try:
        return total_lags(connection, [group])[0].lag
    except ClusterError:
        return None


def _has_ended(folder: PipelineFolder) -> bool:
    return not folder.is_running()


def _waiting_for(folder: PipelineFolder) -> str:
    run = folder.run()
    queries = run.queries if run is not None else ()
    parts = [f"the batch of {query.name}" for query in queries if query.mode != "real-time"]
    parts += [f"the end of the real-time batch of {query.name}" for query in queries if query.mode == "real-time"]
    return f"{folder.name} stops, waiting for {', '.join(parts) or 'its process'}"


def _wait(condition: Callable[[], bool], deadline: float) -> bool:
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True

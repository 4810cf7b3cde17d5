"""`millstream pipeline submit`: pipelines by `spark-submit`, with what they need.

In client mode the driver runs here, and shares the home with all other commands: `list`, `status` and `stop` see it.
Ctrl-C asks it to stop cleanly, as `stop` does, for the signal itself would end Spark's JVM in the middle of a batch;
the second one ends it at once. In cluster mode the driver is somewhere else: the cluster's own tools see and stop it,
and nothing is lost by that, since it goes on from its checkpoints.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.options import Bootstrap, Context, Json
from millstream.cli.output import print_json, warn
from millstream.cli.pipeline_common import (
    Checkpoints,
    Files,
    Home,
    Memory,
    Only,
    SparkSettings,
    home_at,
    need_spark,
    read_pipelines,
    spark_errors,
    spark_settings,
)
from millstream.cli.pipeline_run import LOOK_SECONDS, Metrics, Once
from millstream.cli.signals import Stop
from millstream.cluster.contexts import resolve

if TYPE_CHECKING:
    from millstream.pipelines.home import PipelineFolder
    from millstream.pipelines.submission import Submission


def submit(
    files: Files,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="The cluster: spark://HOST:7077, yarn, k8s://...")
    ],
    only: Only = None,
    deploy_mode: Annotated[
        str, typer.Option("--deploy-mode", metavar="client|cluster", help="Where the driver runs: here, or there.")
    ] = "client",
    home: Home = None,
    checkpoints: Checkpoints = None,
    once: Once = False,
    metrics: Metrics = "off",
    memory: Memory = "1g",
    set_: SparkSettings = None,
    py_files: Annotated[
        list[str] | None,
        typer.Option("--py-file", metavar="FILE", help="More Python for the cluster: .py, .zip or .egg; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the spark-submit command.")] = False,
    bootstrap: Bootstrap = None,
    context: Context = None,
    json: Json = False,
) -> None:
    """Run pipelines on a Spark cluster by spark-submit, which gets all that they need."""
    from millstream.cli import live
    from millstream.pipelines import jars, submission

    need_spark()
    conf = spark_settings(set_)
    pipelines = read_pipelines(files, only, json=json)
    connection = resolve(bootstrap, context)
    where = home_at(home)
    if deploy_mode == "client":
        from millstream.pipelines.spark.session import driver_options

        conf.setdefault("spark.driver.extraJavaOptions", driver_options(where.root))
    mode: Any = deploy_mode
    options = submission.Options(master, mode, checkpoints, metrics, memory, conf, py_files or (), once, only or ())
    with spark_errors(), live.starting() as show:
        found = submission.build(files, pipelines, connection, where, jars.fetch(progress=show), options)
    if dry_run:
        if json:
            print_json({"command": found.command, "environment": found.environment, "folder": str(found.folder)})
        else:
            print(
                " ".join([*(f"{name}={value}" for name, value in found.environment.items()), shlex.join(found.command)])
            )
        return
    folders = [where.pipeline(pipeline.name) for pipeline in pipelines] if deploy_mode == "client" else []
    code = _run(found, folders)
    if json:
        print_json({"exit_code": code})
    raise typer.Exit(code)


def _run(submission: Submission, folders: Sequence[PipelineFolder]) -> int:
    """spark-submit in a session of its own, so that a Ctrl-C reaches us alone."""
    stop = Stop()
    stop.ready()
    environment = {**os.environ, **submission.environment}
    process = subprocess.Popen(submission.command, env=environment, start_new_session=True)
    heard = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        if stop.count > heard:
            heard = stop.count
            if heard == 1 and folders:
                warn("stopping, each query after its batch; once more Ctrl-C stops at once")
                for folder in folders:
                    folder.request("stop")
            else:
                if not folders:
                    warn("spark-submit ends; what runs inside the cluster goes on, until the cluster's tools stop it")
                os.killpg(process.pid, signal.SIGTERM)

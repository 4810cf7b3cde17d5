"""What the `millstream pipeline` commands share: where pipelines keep their state, which is meant, and its cluster."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.options import name_values
from millstream.cli.output import fail, print_json
from millstream.cluster import contexts
from millstream.cluster.answers import nearest
from millstream.cluster.connection import Connection
from millstream.pipelines.home import PipelineFolder, PipelineHome, default_root

if TYPE_CHECKING:
    from millstream.pipelines.checkpoints import FileSystem
    from millstream.pipelines.description.pipeline import Pipeline

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Where pipelines keep their state. [default: MILLSTREAM_PIPELINES, else millstream-pipelines under the "
        "user's data home]",
    ),
]
Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Pipeline files: .yaml, .yml or .py.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The pipeline.")]
Named = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A pipeline that was run here, or its file.")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only these pipelines of the files; repeatable. [default: all]"),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="The Spark cluster, such as spark://host:7077. [default: this machine]"
    ),
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="The memory of Spark's driver.")]
SparkSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting of Spark, such as spark.executor.memory=2g; repeatable."
    ),
]
Checkpoints = Annotated[
    str | None,
    typer.Option(
        "--checkpoints",
        metavar="URL",
        help="Where checkpoints are kept, such as hdfs://host/folder. [default: where they are, at first in --home]",
    ),
]


def home_at(home: Path | None, arguments: Sequence[str] | None = None) -> PipelineHome:
    return PipelineHome(home or default_root(), arguments)


def read_pipelines(files: Sequence[Path], only: Sequence[str] | None = None, *, json: bool = False) -> list[Pipeline]:
    """The pipelines of these files; all mistakes, each on a line, and exit code 2 if there are any."""
    from millstream.pipelines.description.reader import read
    from millstream.pipelines.errors import PipelineError, PipelineErrors

    found: list[Pipeline] = []
    errors: list[PipelineError] = []
    for file in dict.fromkeys(files):
        try:
            found += read(file)
        except PipelineErrors as several:
            errors += several.errors
        except PipelineError as error:
            errors.append(error)
    by_name: dict[str, Pipeline] = {}
    for pipeline in found:
        other = by_name.setdefault(pipeline.name, pipeline)
        if other is not pipeline:
            errors.append(
                PipelineError(f"a pipeline of the name {pipeline.name} is in {other.place} too", pipeline.place)
            )
    if errors:
        if json:
            print_json({"mistakes": [_mistake(wrong) for wrong in errors]})
        for wrong in errors:
            typer.echo(str(wrong), err=True)
        raise typer.Exit(2)
    for name in only or ():
        if name not in by_name:
            fail(f"--only: there is no pipeline {name} in these files{nearest(name, by_name)}", 4)
    return [pipeline for pipeline in found if not only or pipeline.name in only]


def known(name: str, home: PipelineHome) -> PipelineFolder:
    """The folder of a pipeline that was run here; the end, with exit code 4, if there is none."""
    folder = home.pipeline(name)
    if folder.run() is None:
        names = [other.name for other in home.all()]
        fail(f"no pipeline {name} was run here{nearest(name, names)} (`millstream pipeline list` shows all)", 4)
    return folder


def described(target: str, home: PipelineHome) -> Pipeline:
    """The description of a pipeline: by its name, if it was run here, or by its file, if that has only one."""
    run = home.pipeline(target).run()
    if run is None and Path(target).suffix in (".yaml", ".yml", ".py"):
        found = read_pipelines([Path(target)])
        if len(found) > 1:
            names = ", ".join(pipeline.name for pipeline in found)
            fail(f"{target} has several pipelines ({names}): once they were run, they can be told apart by name", 2)
        return found[0]
    run = run or known(target, home).run()
    if run is None or run.file is None:
        fail(f"{target} was described by a program, not by a file that could be read")
    found = [pipeline for pipeline in read_pipelines([Path(run.file)]) if pipeline.name == target]
    if not found:
        fail(f"{run.file}, from which {target} was run, does not have it any more", 4)
    return found[0]


def cluster_of(folder: PipelineFolder, bootstrap: str | None, context: str | None) -> Connection:
    """The cluster that is named; else the one on which the pipeline was run last."""
    run = folder.run()
    if bootstrap or context or run is None:
        return contexts.resolve(bootstrap, context)
    arguments = run.arguments or []
    if "--context" in arguments:
        return contexts.resolve(None, arguments[arguments.index("--context") + 1])
    return contexts.resolve(run.bootstrap, None)


def cluster_arguments(connection: Connection, context: str | None) -> list[str]:
    """What must be typed to mean the same cluster again, whatever the current context is then."""
    if context is None and connection.properties:
        known_contexts = contexts.load()
        context = next((name for name, found in known_contexts.by_name.items() if found == connection), None)
    return ["--context", context] if context else ["--bootstrap", connection.bootstrap]


def spark_settings(given: Sequence[str] | None) -> dict[str, str]:
    settings = name_values(given or [], "--set", "spark.executor.memory=2g")
    for name in settings:
        if not name.startswith("spark."):
            fail(f"--set {name}: Spark's settings begin with spark., for example spark.{name}", 2)
    return settings


def need_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        fail("pipelines run on Spark, which is not here: pip install 'millstream[spark]'")


@contextmanager
def spark_errors() -> Iterator[None]:
    """No Java, or no jars: one sentence, as for all that goes wrong."""
    from millstream.jvm.errors import JvmError

    try:
        yield
    except JvmError as error:
        fail(str(error), error.exit_code)


@contextmanager
def files_at(location: str, home: PipelineHome) -> Iterator[FileSystem]:
    """The file system of checkpoints; one that only Spark reaches is reached through Spark."""
    from millstream.pipelines.checkpoints import LOCAL_FILES
    from millstream.pipelines.description.fields import is_local

    if is_local(location) or location.startswith("file:"):
        yield LOCAL_FILES
        return
    need_spark()
    from millstream.pipelines import jars
    from millstream.pipelines.spark.hadoop_files import files_of
    from millstream.pipelines.spark.session import start_session

    with spark_errors():
        spark = start_session([], jars.fetch(), home.root)
        try:
            yield files_of(location, spark)
        finally:
            spark.stop()


def _mistake(error: Any) -> Mapping[str, Any]:
    place = error.place
    where = {"file": None, "line": None, "field": None} if place is None else place._asdict()
    return {**where, "message": error.message}

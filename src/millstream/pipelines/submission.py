"""Pipelines for a Spark cluster: the `spark-submit` command, with all that they need on the way.

What is sent along: the connectors' jars, the installed `millstream` package as a zip for the workers' Python, the
pipeline files and the local files that they name, and a small script that calls `millstream pipeline run` there.
Millstream's own dependencies cannot be sent like that: in client mode the driver is this Python, which has them; the
workers, and in cluster mode the driver, need a Python that has them too (`pip install 'millstream[spark]'`, or a packed
environment with `--set spark.archives=...`).

All that is made for a submission is in `<home>/.submissions/<pipelines>/`, and is made anew each time.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import millstream
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput
from millstream.pipelines.description.fields import is_local, is_schema_file
from millstream.pipelines.description.pipeline import Pipeline
from millstream.pipelines.description.step import CodeStep
from millstream.pipelines.description.steps import LookupStep
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineHome

DEPLOY_MODES = ("client", "cluster")
CONTEXTS_FILE = "millstream-contexts.toml"
CONTEXT = "submitted"
_SCRIPT = '''"""Made by `millstream pipeline submit`: runs pipelines where spark-submit has put them."""

import os
import shutil
import sys
from pathlib import Path

ARGUMENTS = {arguments!r}
FILES = {files!r}
ENVIRONMENT = {environment!r}

if __name__ == "__main__":
    for sent, path in FILES.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sent, path)
    os.environ.update(ENVIRONMENT)
    sys.argv = ["millstream", *ARGUMENTS]
    from millstream.cli import main

    main()
'''


class Options(NamedTuple):
    """How pipelines run on the cluster."""

    master: str
    deploy_mode: Literal["client", "cluster"] = "client"
    checkpoints: str | None = None
    metrics: str = "off"
    memory: str = "1g"
    conf: Mapping[str, str] = {}
    py_files: Sequence[str] = ()
    once: bool = False
    only: Sequence[str] = ()


class Submission(NamedTuple):
    """A command, and what its environment must have beside the usual."""

    command: list[str]
    environment: dict[str, str]
    folder: Path


def build(
    files: Sequence[Path],
    pipelines: Sequence[Pipeline],
    connection: Connection,
    home: PipelineHome,
    jars: Sequence[Path],
    options: Options,
) -> Submission:
    """Makes all that is sent along. BadInput if it cannot work; PipelineError if there is no Spark."""
    _refuse(options)
    folder = home.root / ".submissions" / "-".join(sorted(pipeline.name for pipeline in pipelines))
    folder.mkdir(parents=True, exist_ok=True)
    files = [file.absolute() for file in files]
    sent = list(dict.fromkeys([*files, *sorted(path for pipeline in pipelines for path in named_files(pipeline))]))
    _refuse_same_names(sent)
    layout = _layout(files, sent) if options.deploy_mode == "cluster" else {}
    arguments = ["pipeline", "run", *(layout.get(file.name, str(file)) for file in files)]
    environment: dict[str, str] = {}
    if connection.properties:
        contexts = _contexts(folder, connection)
        environment["MILLSTREAM_CONFIG"] = contexts.name if layout else str(contexts)
        sent += [contexts] if layout else []
        arguments += ["--context", CONTEXT]
    else:
        arguments += ["--bootstrap", connection.bootstrap]
    arguments += ["--home", "millstream-home" if layout else str(home.root)]
    arguments += _run_arguments(options)
    script = folder / "millstream_submitted.py"
    script.write_text(_SCRIPT.format(arguments=arguments, files=layout, environment=environment))
    package = folder / f"millstream-{millstream.__version__}.zip"
    _zip_package(package)
    command = [
        str(_spark_home() / "bin" / "spark-submit"),
        *("--master", options.master),
        *("--deploy-mode", options.deploy_mode),
        *("--name", "millstream " + ", ".join(pipeline.name for pipeline in pipelines)),
        *("--driver-memory", options.memory),
        *("--jars", ",".join(map(str, jars))),
        *("--py-files", ",".join([str(package), *options.py_files])),
        *("--files", ",".join(map(str, sent))),
    ]
    for name, value in options.conf.items():
        command += ["--conf", f"{name}={value}"]
    return Submission([*command, str(script)], _python(options), folder)


def named_files(pipeline: Pipeline) -> Iterator[Path]:
    """The files on this machine that a pipeline names: schemas, look-ups and Python code."""
    for element in (*pipeline.named_sources.values(), *pipeline.tables.values(), *pipeline.steps, *pipeline.sinks):
        schema = getattr(element, "schema_", None)
        if schema is not None and is_schema_file(schema) and is_local(schema):
            yield Path(schema)
        if isinstance(element, LookupStep) and element.path is not None and is_local(element.path):
            yield Path(element.path)
        if isinstance(element, CodeStep):
            code = getattr(element, element.code)
            if isinstance(code, str) and (file := code.rpartition(":")[0]).endswith(".py"):
                yield Path(file)


def _refuse(options: Options) -> None:
    if options.deploy_mode not in DEPLOY_MODES:
        raise BadInput(f"--deploy-mode: {options.deploy_mode!r} is neither client nor cluster")
    if options.deploy_mode == "client":
        return
    if options.master.startswith(("spark://", "local")):
        raise BadInput(
            f"--deploy-mode cluster: Spark cannot run a Python driver inside {options.master}; leave it out (client "
            "mode, the driver runs here), or use a YARN or Kubernetes master"
        )
    if options.checkpoints is None or is_local(options.checkpoints):
        raise BadInput(
            "--deploy-mode cluster: the driver's machine may be another one each time: give --checkpoints a URL that "
            "the whole cluster reaches, such as hdfs://namenode/checkpoints or s3a://bucket/checkpoints"
        )


def _refuse_same_names(files: Sequence[Path]) -> None:
    """On the cluster they all lie in one folder."""
    seen: dict[str, Path] = {}
    for file in files:
        other = seen.setdefault(file.name, file)
        if other.absolute() != file.absolute():
            raise BadInput(
                f"{other} and {file} have the same name, and spark-submit puts both into one folder: rename one"
            )


def _layout(files: Sequence[Path], sent: Sequence[Path]) -> dict[str, str]:
    """Name of a file that was sent -> where pipelines look for it: as here, seen from the pipeline files' folder."""
    base = Path(os.path.commonpath([file.parent for file in files]))
    for path in sent:
        if not path.is_relative_to(base):
            raise BadInput(
                f"--deploy-mode cluster: {path} is not below {base}, the pipeline's folder, and could not be found "
                "on the cluster: move it there, or to where the whole cluster reaches it"
            )
    return {path.name: f"pipelines/{path.relative_to(base)}" for path in sent}


def _run_arguments(options: Options) -> list[str]:
    arguments = ["--master", options.master, "--memory", options.memory, "--metrics", options.metrics]
    if options.checkpoints is not None:
        arguments += ["--checkpoints", options.checkpoints]
    for name in options.only:
        arguments += ["--only", name]
    return [*arguments, *(["--once"] if options.once else [])]


def _contexts(folder: Path, connection: Connection) -> Path:
    """The cluster's address and properties, which can be secrets: in a file, not on a command line."""
    import tomli_w

    file = folder / CONTEXTS_FILE
    file.unlink(missing_ok=True)
    entry: dict[str, Any] = {"bootstrap": connection.bootstrap, "properties": dict(connection.properties)}
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        tomli_w.dump({"current": CONTEXT, "contexts": {CONTEXT: entry}}, out)
    return file


def _zip_package(file: Path) -> None:
    """The installed package, the same bytes for the same sources."""
    root = Path(millstream.__file__).parent
    temporary = file.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".typed"):
                name = zipfile.ZipInfo(str(Path("millstream") / path.relative_to(root)), (2020, 1, 1, 0, 0, 0))
                name.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(name, path.read_bytes())
    temporary.replace(file)


def _spark_home() -> Path:
    """`SPARK_HOME`, or PySpark itself, which has all of Spark in it."""
    if os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"])
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise PipelineError("there is no Spark here: pip install 'millstream[spark]', or set SPARK_HOME")
    return Path(found.submodule_search_locations[0])


def _python(options: Options) -> dict[str, str]:
    """The driver here is this Python. The workers' is the same path, unless somebody says otherwise."""
    if options.deploy_mode == "cluster":
        return {}
    chosen = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    if "PYSPARK_PYTHON" not in os.environ and "spark.pyspark.python" not in options.conf:
        chosen["PYSPARK_PYTHON"] = sys.executable
    return chosen

"""The `spark-submit` command and what goes along with it."""

import importlib.util
import re
import runpy
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import millstream
from millstream.cluster.connection import Connection
from millstream.cluster.errors import BadInput
from millstream.pipelines.description.reader import read
from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.submission import Options, Submission, build, named_files

PIPELINE = """
pipeline: frauds
source: {topic: accesslog, value: avro, schema: schemas/log.avsc}
steps:
  - lookup: {name: ranges, on: ip, type: file, path: data/ranges.csv}
  - python: code.py:clean
sinks:
  - {topic: frauds}
"""
HERE = Connection("127.0.0.1:9092")
SECURE = Connection("kafka:9092", {"sasl.password": "p4ssw0rd"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "frauds.yaml": PIPELINE,
        "schemas/log.avsc": '{"type": "record", "name": "log", "fields": []}',
        "data/ranges.csv": "ip,fraud\n1,true\n",
        "code.py": "def clean(stream):\n    return stream\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "frauds.yaml"


def submit(file: Path, connection: Connection = HERE, **options: object) -> Submission:
    home = PipelineHome(file.parent.parent / "home")
    given: dict[str, object] = {"master": "spark://master:7077", **options}
    return build([file], read(file), connection, home, [Path("/jars/a.jar"), Path("/jars/b.jar")], Options(**given))  # type: ignore[arg-type]


def option(submission: Submission, name: str) -> str:
    return submission.command[submission.command.index(name) + 1]


def arguments(submission: Submission) -> list[str]:
    """What the script hands to `millstream`."""
    found: list[str] = runpy.run_path(submission.command[-1])["ARGUMENTS"]
    return found


def test_the_command(file: Path) -> None:
    found = submit(file, conf={"spark.executor.memory": "2g"}, py_files=["more.py"], memory="3g")
    assert found.command[0].endswith("/bin/spark-submit")
    assert option(found, "--master") == "spark://master:7077"
    assert option(found, "--deploy-mode") == "client"
    assert option(found, "--driver-memory") == "3g"
    assert option(found, "--jars") == "/jars/a.jar,/jars/b.jar"
    assert option(found, "--conf") == "spark.executor.memory=2g"
    assert option(found, "--py-files").endswith(f"/millstream-{millstream.__version__}.zip,more.py")
    sent = [Path(path).name for path in option(found, "--files").split(",")]
    assert sent == ["frauds.yaml", "code.py", "ranges.csv", "log.avsc"]
    assert found.environment["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_in_client_mode_everything_is_where_it_is(file: Path) -> None:
    found = submit(file, once=True, only=["frauds"], checkpoints="hdfs://n/c", metrics="0.0.0.0:9700")
    assert arguments(found) == [
        "pipeline", "run", str(file), "--bootstrap", "127.0.0.1:9092", "--home", str(file.parent.parent / "home"),
        "--master", "spark://master:7077", "--memory", "1g", "--metrics", "0.0.0.0:9700",
        "--checkpoints", "hdfs://n/c", "--only", "frauds", "--once",
    ]  # fmt: skip


def test_the_script_calls_the_command(file: Path) -> None:
    script = submit(file).command[-1]
    seen: list[str] = []
    with (
        mock.patch("millstream.cli.main", side_effect=lambda: seen.extend(sys.argv)),
        mock.patch.object(sys, "argv", ["script"]),
    ):
        runpy.run_path(script, run_name="__main__")
    assert seen[:3] == ["millstream", "pipeline", "run"]


def test_in_cluster_mode_files_lie_as_they_do_here(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = submit(file, SECURE, master="yarn", deploy_mode="cluster", checkpoints="hdfs://n/c")
    there = tmp_path / "container"
    there.mkdir()
    for path in option(found, "--files").split(","):
        (there / Path(path).name).write_bytes(Path(path).read_bytes())
    monkeypatch.chdir(there)
    with mock.patch("millstream.cli.main"), mock.patch.object(sys, "argv", ["script"]), mock.patch.dict("os.environ"):
        runpy.run_path(found.command[-1], run_name="__main__")
        given = sys.argv[1:]
    assert given[:3] == ["pipeline", "run", "pipelines/frauds.yaml"]
    (pipeline,) = read(Path(given[2]))  # all the files that it names are there
    assert {path.relative_to(there) for path in named_files(pipeline)} == {
        Path("pipelines/schemas/log.avsc"), Path("pipelines/data/ranges.csv"), Path("pipelines/code.py")
    }  # fmt: skip
    assert given[given.index("--context") + 1] == "submitted"
    assert tomllib.loads((there / "millstream-contexts.toml").read_text())["contexts"]["submitted"] == {
        "bootstrap": "kafka:9092",
        "properties": {"sasl.password": "p4ssw0rd"},
    }
    assert found.environment == {}


def test_secrets_are_in_no_command_line(file: Path) -> None:
    found = submit(file, SECURE)
    assert "p4ssw0rd" not in " ".join(found.command)
    assert "p4ssw0rd" not in Path(found.command[-1]).read_text()
    contexts = found.folder / "millstream-contexts.toml"
    assert "p4ssw0rd" in contexts.read_text()
    assert stat.S_IMODE(contexts.stat().st_mode) == 0o600
    assert "--context" in arguments(found)


def test_the_package_can_be_imported_from_its_zip(file: Path) -> None:
    package = option(submit(file), "--py-files")
    names = zipfile.ZipFile(package).namelist()
    assert "millstream/pipelines/spark/rows.py" in names
    assert "millstream/py.typed" in names
    assert not any("__pycache__" in name for name in names)
    program = (
        f"import sys; sys.path.insert(0, {package!r}); import millstream.pipelines.home as home; print(home.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(package)


def test_the_same_sources_give_the_same_package(file: Path) -> None:
    package = Path(option(submit(file), "--py-files"))
    before = package.read_bytes()
    submit(file)
    assert package.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"deploy_mode": "clusters"}, "'clusters' is neither client nor cluster"),
        (
            {"deploy_mode": "cluster", "checkpoints": "hdfs://n/c"},
            "cannot run a Python driver inside spark://master:7077",
        ),
        ({"deploy_mode": "cluster", "master": "yarn"}, "give --checkpoints a URL"),
        ({"deploy_mode": "cluster", "master": "yarn", "checkpoints": "/here"}, "give --checkpoints a URL"),
    ],
)
def test_what_cannot_work_is_refused(file: Path, options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(BadInput, match=re.escape(wrong)):
        submit(file, **options)


def test_files_outside_the_pipelines_folder(file: Path) -> None:
    (file.parent.parent / "elsewhere.csv").write_text("ip,fraud\n")
    file.write_text(PIPELINE.replace("data/ranges.csv", "../elsewhere.csv"))
    assert "elsewhere.csv" in option(submit(file), "--files")
    with pytest.raises(BadInput, match=r"elsewhere.csv is not below .*/project, the pipeline's folder"):
        submit(file, master="yarn", deploy_mode="cluster", checkpoints="hdfs://n/c")


def test_two_files_of_one_name(file: Path) -> None:
    (file.parent / "data" / "code.py").write_text("def clean(stream):\n    return stream\n")
    file.write_text(PIPELINE.replace("sinks:", "  - python: data/code.py:clean\nsinks:"))
    with pytest.raises(BadInput, match="have the same name, and spark-submit puts both into one folder"):
        submit(file)


def test_spark_home(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert submit(file).command[0] == "/opt/spark/bin/spark-submit"
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match="there is no Spark here"):
        submit(file)


def test_the_workers_python_is_the_users_choice(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert submit(file).environment["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_PYTHON" not in submit(file, conf={"spark.pyspark.python": "env/bin/python"}).environment
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert "PYSPARK_PYTHON" not in submit(file).environment

"""`millstream pipeline ...` as a person meets it, without Spark: a fake runner stands for it where one must run."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from millstream.cli.pipeline_view import LineView, line_of, picture_of
from millstream.cluster.connection import Connection
from millstream.pipelines.home import PipelineHome
from millstream.pipelines.status import PipelineStatus, QueryStatus, State
from support.cli import refused, run, succeed
from support.cluster import Cluster, eventually, unique
from support.pipelines import Letters, begin, fill, new_topic, write_checkpoint
from support.terminal import in_terminal, read_terminal

PIPELINE = (
    "pipeline: {name}\nsource: {{topic: {topic}, value: text}}\nsinks:\n  - {{topic: {topic}-out, value: text}}\n"
)
QUERY = QueryStatus(
    "main", "micro-batch", "a table takes batches", 3, 1200, 40.5, 7, 0.25, "2026-01-31T12:00:00.000Z", 9, 2, 1
)
FAKE = [sys.executable, str(Path(__file__).parent.parent / "support" / "fake_runner.py")]


class Place:
    """A home of pipelines, a cluster, and a file with a pipeline."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.connection = Connection(bootstrap)
        self.root = folder / "home"
        self.home = PipelineHome(self.root, ["--bootstrap", bootstrap])
        self.name = unique("clicks")
        self.topic = unique("clicks")
        self.file = folder / "clicks.yaml"
        self.file.write_text(PIPELINE.format(name=self.name, topic=self.topic))
        self.folder = self.home.pipeline(self.name)

    def begin(self, state: State | None = "stopped", error: str | None = None) -> None:
        begin(self.folder, self.file, self.connection.bootstrap, os.getpid())
        if state is not None:
            self.folder.record(PipelineStatus(self.name, state, error, (QUERY,)))

    def __call__(self, *arguments: str, **options: Any) -> Any:
        return succeed("pipeline", *arguments, "--home", str(self.root), **options)

    def refused(self, code: int, *arguments: str) -> str:
        return refused(code, "pipeline", *arguments, "--home", str(self.root))

    @contextmanager
    def running(self) -> Iterator[None]:
        """A thread that has the lock and obeys, as a runner does."""
        lock = self.folder.acquire()
        assert lock is not None
        self.begin("running")
        over = threading.Event()

        def obey() -> None:
            mine = PipelineHome(self.root).pipeline(self.name)
            while not over.is_set():
                request = mine.take_request()
                if request is not None:
                    state: State = "stopped" if request == "stop" else "running"
                    mine.record(PipelineStatus(self.name, state, None, (QUERY._replace(batch=None),)))
                over.wait(0.01)

        thread = threading.Thread(target=obey)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            os.close(lock)


@pytest.fixture
def place(tmp_path: Path, cluster: Cluster) -> Place:
    return Place(tmp_path, cluster.bootstrap_servers)


# --- list and status ---


def test_nothing_was_run_here(place: Place) -> None:
    assert place("list").stdout == "no pipelines (`millstream pipeline run FILE` runs one)\n"
    assert place("list", "--json").json == []
    assert "no pipeline clicks was run here" in place.refused(4, "status", "clicks")


def test_the_home_of_the_environment(place: Place) -> None:
    place.begin()
    assert place.name in succeed("pipeline", "list", MILLSTREAM_PIPELINES=str(place.root)).stdout


def test_list(place: Place) -> None:
    place.begin("running")
    (row,) = place("list", "--json").json
    assert (row["pipeline"], row["state"], row["rows"], row["lag"]) == (place.name, "killed", 1200, 7)
    with place.running():
        text = place("list").stdout
    assert place.name in text
    assert "main (micro-batch)" in text
    assert " running " in text


def test_status(place: Place) -> None:
    place.begin("failed", "no column ip")
    text = place("status", place.name).stdout
    assert "no column ip" in text
    assert str(place.file) in text
    assert "main: micro-batch (a table takes batches)" in text
    assert "40" in text
    data = place("status", place.name, "--json").json
    assert (data["state"], data["error"], data["queries"][0]["rows"]) == ("failed", "no column ip", 1200)
    assert data["group"] == f"millstream-{place.name}"
    assert data["group_lag"] is None
    meant = place.refused(4, "status", place.name[:-1])
    assert f"did you mean {place.name}?" in meant


def test_status_shows_the_lag_that_the_cluster_sees(place: Place) -> None:
    from millstream.pipelines.offsets import commit_group

    place.begin()
    topic = new_topic(place.connection)
    fill(place.connection, topic, 5)
    commit_group(place.connection, f"millstream-{place.name}", {topic: {0: 2}})
    assert place("status", place.name, "--json").json["group_lag"] == 3


# --- stop and restart ---


def test_stop(place: Place) -> None:
    with place.running():
        assert place("stop", place.name).stdout == f"stopped {place.name}\n"
        assert f"{place.name} does not run (stopped)" in place.refused(4, "stop", place.name)


def test_stop_all(place: Place) -> None:
    with place.running():
        assert place("stop", "--all", "--json").json == {"stopped": [place.name]}
    assert place("stop", "--all").stdout == "no pipeline runs here\n"


def test_which_to_stop_must_be_said(place: Place) -> None:
    assert "say which pipelines" in place.refused(2, "stop")
    assert "say which pipelines" in place.refused(2, "stop", "clicks", "--all")
    assert "no pipeline clicks was run here" in place.refused(4, "stop", "clicks")


def test_restart_in_its_process(place: Place) -> None:
    with place.running():
        assert place("restart", place.name, "--json").json == {"pipeline": place.name, "state": "running"}


def test_restart_of_what_was_not_started_by_the_command(place: Place) -> None:
    begin(PipelineHome(place.root).pipeline(place.name), place.file)
    assert "was not started by `millstream pipeline run`" in place.refused(1, "restart", place.name)


def test_restart_without_the_file(place: Place) -> None:
    place.begin()
    place.file.unlink()
    assert "which is not there any more" in place.refused(4, "restart", place.name)


# --- check and run, up to where Spark would start ---


def test_check_without_spark(place: Place) -> None:
    assert f"pipeline {place.name}" in place("check", str(place.file), "--no-spark").stdout
    (facts,) = place("check", str(place.file), "--no-spark", "--json").json
    assert facts["pipeline"] == place.name


def test_mistakes_each_on_a_line(place: Place, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("pipeline: a\nsource: {topc: x}\nsinks:\n  - {topic: y, valeu: json}\n")
    said = place.refused(2, "check", str(wrong), str(tmp_path / "missing.yaml"))
    lines = said.splitlines()
    assert lines[0].startswith(f"{wrong}:2: source")
    assert lines[1].startswith(f"{wrong}:4: sinks[0]")
    assert "there is no file" in lines[2]
    result = run("pipeline", "run", str(wrong), "--json", "--home", str(place.root))
    assert result.exit_code == 2
    assert [(mistake["line"], mistake["file"]) for mistake in result.json["mistakes"]] == [
        (2, str(wrong)),
        (4, str(wrong)),
    ]


def test_two_pipelines_of_one_name(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(place.file.read_text())
    assert f"a pipeline of the name {place.name} is in" in place.refused(2, "check", str(place.file), str(other))


@pytest.mark.parametrize(
    ("arguments", "code", "wrong"),
    [
        (("--set", "memory=2g"), 2, "Spark's settings begin with spark., for example spark.memory"),
        (("--set", "spark.x"), 2, "is not NAME=VALUE"),
        (("--metrics", "here"), 2, "--metrics 'here' is not HOST:PORT"),
        (("--only", "others"), 4, "--only: there is no pipeline others in these files"),
        (("--bootstrap", "127.0.0.1:1"), 3, "no broker answers at 127.0.0.1:1"),
    ],
)
def test_arguments_of_run(place: Place, arguments: tuple[str, ...], code: int, wrong: str) -> None:
    assert wrong in place.refused(code, "run", str(place.file), *arguments)


def test_a_pipeline_runs_once(place: Place) -> None:
    with place.running():
        said = place.refused(1, "run", str(place.file), "--bootstrap", place.connection.bootstrap)
    assert f"pipeline {place.name} runs already (process {os.getpid()} on here)" in said


# --- run with a runner that needs no Spark ---


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def fake_run(place: Place, *names: str, arguments: tuple[str, ...] = ()) -> list[str]:
    documents = [PIPELINE.format(name=name, topic=place.topic) for name in names]
    place.file.write_text("---\n".join(documents))
    where = ("--home", str(place.root), "--bootstrap", place.connection.bootstrap)
    return [*FAKE, "pipeline", "run", str(place.file), *where, *arguments]


@contextmanager
def foreground(place: Place, *names: str, arguments: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    command, pipe = fake_run(place, *names, arguments=arguments), subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if wanted in line:
            return lines
    raise AssertionError(f"{wanted!r} is not in {lines}: {process.stderr and process.stderr.read()}")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_clean_end(place: Place, end: signal.Signals) -> None:
    with foreground(place, "clicks", "views") as process:
        lines = read_until(process, "views/main: batch 0")
        assert lines[0] == "clicks/main: micro-batch (a table takes batches)"
        assert "clicks: running" in lines
        assert "clicks/main: batch 0, 12 rows, 4/s, lag 4, 0.25 s a batch" in lines
        process.send_signal(end)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "stopping, waiting for the batches of clicks/main, views/main; once more Ctrl-C stops at once" in rest
    assert rest.splitlines()[-2:] == ["clicks: stopped", "views: stopped"]


def test_the_second_ctrl_c_does_not_wait(place: Place) -> None:
    with foreground(place, "slow") as process:
        read_until(process, "slow: running")
        process.send_signal(signal.SIGINT)
        read_until(process, "slow: stopping")
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert rest.splitlines()[-2:] == ["stopping at once", "slow: stopped"]


def test_a_pipeline_that_fails_leaves_the_others_alone(place: Place) -> None:
    with foreground(place, "bad", "good") as process:
        assert "bad: failed: no column ip" in read_until(process, "good: running")
        assert "stopped good" in place("stop", "good").stdout
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1, errors


def test_only_some_pipelines_of_a_file_as_json(place: Place) -> None:
    with foreground(place, "clicks", "views", arguments=("--only", "views", "--json")) as process:
        (line,) = read_until(process, "running")
        assert json.loads(line)["name"] == "views"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    states = [data["state"] for data in map(json.loads, rest.splitlines()) if "state" in data]
    assert states[-1] == "stopped"
    run_again = place.home.pipeline("views").run()
    assert run_again is not None
    assert run_again.arguments == [
        "--home", str(place.root), "--bootstrap", place.connection.bootstrap, "--memory", "1g", "--metrics", "off"
    ]  # fmt: skip


@pytest.fixture
def fake_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in the background needs no Spark either."""
    monkeypatch.setattr("millstream.cli.pipeline_run.COMMAND", tuple(FAKE))
    monkeypatch.setattr("millstream.cli.pipeline_run._fetch_jars", lambda: None)


@pytest.mark.usefixtures("fake_command")
def test_in_the_background(place: Place) -> None:
    where = ("--bootstrap", place.connection.bootstrap)
    text = place("run", str(place.file), "--detach", *where).stdout
    assert text.startswith(f"{place.name} is running (process ")
    try:
        assert place.folder.is_running()
        assert "runs already" in place.refused(1, "run", str(place.file), "--detach", *where)
        assert place("stop", place.name).exit_code == 0
        eventually(lambda: not place.folder.is_held())
        again = place("restart", place.name, "--json").json
        assert again["pipelines"] == [{"pipeline": place.name, "state": "running", "error": None}]
        (row,) = place("list", "--json").json
        assert row["state"] == "running"
    finally:
        place("stop", "--all")
    eventually(lambda: not place.folder.is_held())


@pytest.mark.usefixtures("fake_command")
@pytest.mark.parametrize(("name", "said"), [("bad", "bad: no column ip"), ("odd", "Spark does not start (no Java)")])
def test_what_does_not_start_in_the_background(place: Place, name: str, said: str) -> None:
    place.file.write_text(PIPELINE.format(name=name, topic="t"))
    result = run(
        "pipeline",
        "run",
        str(place.file),
        "--detach",
        "--home",
        str(place.root),
        "--bootstrap",
        place.connection.bootstrap,
    )
    assert result.exit_code == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_the_live_view_on_a_terminal(place: Place) -> None:
    with in_terminal(fake_run(place, "slow"), ENVIRONMENT, columns=160) as (process, terminal):
        drawn = read_terminal(terminal, "running")
        assert "dead letters" in drawn
        assert "micro-batch" in drawn
        process.send_signal(signal.SIGINT)
        read_terminal(terminal, "once more Ctrl-C stops at once")
        process.send_signal(signal.SIGINT)
        rest = read_terminal(terminal, "")
        process.wait(30)
    assert process.returncode == 0
    assert "stopped" in rest
    assert "Traceback" not in rest
    assert "\x1b[?25h" in rest, "the cursor is shown again"


# --- how they look ---


def test_lines_only_when_something_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with LineView(json=False) as view:
        for state in ("starting", "running", "running"):
            view.update([PipelineStatus("clicks", state, None, (QUERY,) if state == "running" else ())])
            view.show()
    assert capsys.readouterr().out.splitlines() == [
        "clicks: starting",
        "clicks/main: micro-batch (a table takes batches)",
        "clicks: running",
        "clicks/main: batch 3, 1,200 rows, 40/s, lag 7, 0.25 s a batch, watermark 2026-01-31T12:00:00.000Z, "
        "9 rows of state, 2 late, 1 dead letter",
    ]


def test_a_query_that_knows_nothing_yet() -> None:
    assert line_of("clicks", QueryStatus("main")) == "clicks/main: batch -, 0 rows"


def test_the_picture() -> None:
    console = Console(width=200, record=True, file=None)
    with console.capture() as captured:
        console.print(
            picture_of(
                [PipelineStatus("clicks", "running", None, (QUERY,)), PipelineStatus("bad", "failed", "no column")]
            )
        )
    text = captured.get()
    assert "dead letters" in text
    assert "2026-01-31 12:00:00" in text
    assert "bad: no column" in text


# --- reset ---


@pytest.fixture
def stopped(place: Place) -> Place:
    """It has read 3 of 5 records."""
    place.topic = new_topic(place.connection)
    place.file.write_text(PIPELINE.format(name=place.name, topic=place.topic))
    fill(place.connection, place.topic, 5)
    place.begin("stopped")
    write_checkpoint(Path(place.folder.checkpoint("main")), [{place.topic: {0: 0}}], [[{place.topic: {0: 3}}]])
    return place


def test_reset_says_first_what_happens(stopped: Place) -> None:
    text = stopped("reset", stopped.name, "--to", "earliest").stdout
    assert "3 records processed again, 0 records skipped" in text
    assert f"topic {stopped.topic}-out: the records are written again: readers see them twice" in text
    assert f"to empty it: millstream topic truncate {stopped.topic}-out --before all --execute" in text
    assert text.endswith("nothing was reset; --execute does it\n")
    assert Path(stopped.folder.checkpoint("main")).exists()


def test_reset_executed(stopped: Place) -> None:
    data = stopped("reset", stopped.name, "--to", "latest", "--execute", "--json").json
    assert (data["executed"], data["skipped"], data["again"]) == (True, 2, 0)
    assert not Path(stopped.folder.checkpoint("main")).exists()
    assert stopped.folder.start_override() == {"stream": {stopped.topic: {0: 5}}}
    text = stopped("reset", str(stopped.file), "--to", f"{stopped.topic}:0=1", "--execute").stdout
    assert "it has no checkpoints yet" in text
    assert text.endswith(f"reset: {stopped.name} goes on there when it is run next\n")


def test_reset_without_repetition(stopped: Place) -> None:
    text = stopped("reset", stopped.name, "--to", "latest").stdout
    assert f"topic {stopped.topic}-out: nothing is written again" in text
    assert "to empty it" not in text


def test_no_reset_while_it_runs(place: Place) -> None:
    place.topic = new_topic(place.connection)
    place.file.write_text(PIPELINE.format(name=place.name, topic=place.topic))
    with place.running():
        assert "not now: pipeline" in place("reset", place.name, "--to", "earliest").stdout
        assert "stop it first" in place.refused(1, "reset", place.name, "--to", "earliest", "--execute")


def test_reset_of_the_unknown(place: Place) -> None:
    assert "no pipeline nobody was run here" in place.refused(4, "reset", "nobody", "--to", "earliest")
    assert "is not a place to begin" in place.refused(2, "reset", "nobody", "--to", "yonder")
    place.begin()
    place.file.write_text(PIPELINE.format(name="another", topic="t"))
    assert "does not have it any more" in place.refused(4, "reset", place.name, "--to", "earliest")


# --- dead letters ---


@pytest.fixture
def letters(place: Place) -> Letters:
    place.begin()
    found = Letters(place.connection, place.name)
    place.file.write_text(PIPELINE.format(name=place.name, topic="t") + f"dead_letters: {found.topic}\n")
    return found


def test_dead_letters_listed(place: Place, letters: Letters) -> None:
    assert place("dead-letters", place.name).stdout == f"no dead letters in {letters.topic}\n"
    letters.add(3, message="'x' is not a date")
    text = place("dead-letters", place.name, "--count", "2").stdout
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["0:2", "0:1"]
    assert f"{letters.origin}-1:2" in text
    found = place("dead-letters", place.name, "--json").json
    assert [letter["value"] for letter in found] == ["2", "1", "0"]
    assert place("dead-letters", place.name, "--stage", "sink", "--json").json == []


def test_dead_letters_by_cause(place: Place, letters: Letters) -> None:
    letters.add(3, message="'x' is not a date")
    letters.add(1, error="sink", message="no such table")
    rows = place("dead-letters", place.name, "--by-cause", "--json").json
    assert [(row["letters"], row["error"], row["message"]) for row in rows] == [
        (3, "parse", "'...' is not a date"),
        (1, "sink", "no such table"),
    ]
    one = place("dead-letters", place.name, "--cause", rows[1]["cause"], "--json").json
    assert [letter["value"] for letter in one] == ["3"]
    assert "no such table" in place("dead-letters", place.name, "--by-cause").stdout


def test_dead_letters_sent_back(place: Place, letters: Letters) -> None:
    letters.add(3)
    letters.add(1, origin=("rows", None, None))
    text = place("dead-letters", place.name, "--redrive").stdout
    assert f"3 records would be sent to {letters.origin}" in text
    assert "1 letter stay: it is no record of a topic (source rows)" in text
    assert text.endswith("nothing was sent yet; --execute does it\n")
    some = place("dead-letters", place.name, "--redrive", "--execute", "--offsets", "0:1-2", "--json").json
    assert (some["executed"], some["sent"]) == (True, {letters.origin: 2})
    assert f"1 record sent to {letters.origin}" in place("dead-letters", place.name, "--redrive", "--execute").stdout
    assert "there is nothing to send" in place("dead-letters", place.name, "--redrive", "--execute").stdout
    target = new_topic(place.connection)
    assert (
        f"1 record sent to {target}"
        in place("dead-letters", place.name, "--redrive", "--to", target, "--execute").stdout
    )


def test_no_dead_letters_yet(place: Place) -> None:
    place.begin()
    said = place("dead-letters", place.name).stdout
    assert said == f"no dead letters: there is no topic {place.name}-dead-letters yet\n"
    assert place("dead-letters", place.name, "--by-cause", "--json").json == []
    assert "there is no topic nothing" in place.refused(4, "dead-letters", place.name, "--topic", "nothing")
    bootstrap = ("--bootstrap", place.connection.bootstrap)
    assert "there is no topic nobody-dead-letters" in place.refused(4, "dead-letters", "nobody", *bootstrap)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("--by-cause", "--redrive"), "give one of them"),
        (("--execute",), "are for --redrive"),
        (("--to", "x"), "are for --redrive"),
        (("--redrive", "--offsets", "7"), "is not PARTITION:OFFSET"),
    ],
)
def test_arguments_of_dead_letters(place: Place, arguments: tuple[str, ...], wrong: str) -> None:
    assert wrong in place.refused(2, "dead-letters", place.name, "--bootstrap", place.connection.bootstrap, *arguments)


# --- submit ---


@pytest.fixture
def no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.pipelines.jars.fetch", lambda progress: [Path("/jars/kafka.jar")])


@pytest.mark.usefixtures("no_jars")
def test_the_command_that_would_be_run(place: Place) -> None:
    arguments = ("submit", str(place.file), "--master", "spark://m:7077", "--dry-run", "--set", "spark.cores.max=2")
    text = place(*arguments).stdout
    assert "/bin/spark-submit --master spark://m:7077 --deploy-mode client" in text
    assert "--jars /jars/kafka.jar" in text
    assert "--conf spark.cores.max=2" in text
    data = place(*arguments, "--json").json
    assert data["command"][-1].endswith("millstream_submitted.py")
    assert (Path(data["folder"]) / "millstream_submitted.py").exists()


@pytest.mark.usefixtures("no_jars")
def test_what_cannot_be_submitted(place: Place) -> None:
    said = place.refused(2, "submit", str(place.file), "--master", "yarn", "--deploy-mode", "cluster", "--dry-run")
    assert "give --checkpoints a URL" in said


@pytest.mark.usefixtures("no_jars")
def test_submit_runs_spark_submit_and_gives_its_exit_code(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "spark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/given\nexit 7\n')
    script.chmod(0o755)
    result = run(
        "pipeline", "submit", str(place.file), "--master", "spark://m:7077", "--home", str(place.root),
        SPARK_HOME=str(tmp_path / "spark"),
    )  # fmt: skip
    assert result.exit_code == 7
    assert "--deploy-mode client" in (tmp_path / "given").read_text()

"""What pipelines keep on this machine: who runs them, how they are, what is asked of them, where they begin."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.pipelines.errors import PipelineError
from millstream.pipelines.home import PipelineFolder, PipelineHome, QueryMode, default_root
from millstream.pipelines.status import PipelineStatus, QueryStatus
from support.pipelines import begin

RUNNING = PipelineStatus(
    "clicks", "running", None, (QueryStatus("main", "micro-batch", "a table takes batches", 4, 12),)
)


@pytest.fixture
def home(tmp_path: Path) -> PipelineHome:
    return PipelineHome(tmp_path / "home", ["--memory", "2g"])


@pytest.fixture
def folder(home: PipelineHome) -> PipelineFolder:
    return home.pipeline("clicks")


@contextmanager
def held(folder: PipelineFolder) -> Iterator[None]:
    lock = folder.acquire()
    assert lock is not None
    try:
        yield
    finally:
        os.close(lock)


def test_where_the_home_is(tmp_path: Path) -> None:
    assert default_root({"MILLSTREAM_PIPELINES": "/srv/pipelines"}) == Path("/srv/pipelines")
    assert default_root({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "millstream-pipelines"


def test_one_process_at_a_time_has_a_pipeline(folder: PipelineFolder) -> None:
    assert not folder.is_held()
    with held(folder):
        assert folder.is_held()
        assert folder.acquire() is None
    assert not folder.is_held()


def test_the_lock_of_a_killed_process_is_free(folder: PipelineFolder) -> None:
    program = (
        "import sys; from pathlib import Path; from millstream.pipelines.home import PipelineHome;"
        "PipelineHome(Path(sys.argv[1])).pipeline('clicks').acquire(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder.path.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert folder.is_held()
        process.kill()
        process.wait()
        assert not folder.is_held()


def test_a_run_from_its_start_to_its_end(home: PipelineHome, folder: PipelineFolder, tmp_path: Path) -> None:
    assert folder.run() is None
    assert home.all() == []
    with held(folder):
        begin(folder, tmp_path / "clicks.yaml", "127.0.0.1:1", pid=7)
        run = folder.run()
        assert run is not None
        assert (run.pid, run.host, run.state, run.bootstrap) == (7, "here", "starting", "127.0.0.1:1")
        assert (run.file, run.arguments) == (str(tmp_path / "clicks.yaml"), ["--memory", "2g"])
        assert folder.is_running()
        assert folder.progress() is None
        folder.record(RUNNING)
        assert folder.state() == "running"
        assert folder.progress() == RUNNING
        assert folder.run() == run._replace(
            state="running", queries=(QueryMode("main", "micro-batch", "a table takes batches"),)
        )
        folder.record(RUNNING._replace(state="failed", error="no column ip"))
        assert not folder.is_running()  # it has ended, though its process may go on with others
        assert folder.is_held()
    assert folder.state() == "failed"
    assert [found.name for found in home.all()] == ["clicks"]
    found = home.pipeline("clicks").run()
    assert found is not None
    assert found.error == "no column ip"


def test_a_pipeline_whose_process_went_without_a_word_was_killed(folder: PipelineFolder) -> None:
    with held(folder):
        begin(folder, None)
        folder.record(RUNNING)
    assert folder.state() == "killed"
    assert not folder.is_running()


def test_a_new_run_forgets_the_figures_and_requests_of_the_last(folder: PipelineFolder) -> None:
    begin(folder, None)
    folder.record(RUNNING)
    folder.request("stop")
    begin(folder, None)
    assert folder.progress() is None
    assert folder.take_request() is None


def test_nothing_is_written_while_nothing_changes(folder: PipelineFolder) -> None:
    begin(folder, None)
    folder.record(RUNNING)
    file = folder.path / "run" / "progress.json"
    written = file.stat().st_ino
    folder.record(RUNNING)
    assert file.stat().st_ino == written
    sign = folder.last_sign()
    folder.record(RUNNING._replace(state="stopping"))
    assert file.stat().st_ino != written
    assert folder.last_sign() >= sign > 0


def test_others_cannot_read_how_it_was_started(folder: PipelineFolder) -> None:
    begin(folder, None)
    assert stat.S_IMODE((folder.path / "run" / "run.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": 1}'])
def test_a_broken_file_is_no_run(folder: PipelineFolder, text: str) -> None:
    begin(folder, None)
    for name in ("run.json", "progress.json"):
        (folder.path / "run" / name).write_text(text)
    assert folder.run() is None
    assert folder.progress() is None
    assert folder.last_sign() == 0


def test_a_request_is_taken_once_and_the_last_counts(folder: PipelineFolder) -> None:
    begin(folder, None)
    assert folder.take_request() is None
    folder.request("restart")
    folder.request("stop")
    assert not folder.request_done()
    assert folder.take_request() == "stop"
    assert folder.take_request() is None
    assert not folder.request_done()
    folder.record(RUNNING)
    assert folder.request_done()


def test_checkpoints_lie_in_the_home(folder: PipelineFolder) -> None:
    assert folder.checkpoint("main") == f"{folder.path}/checkpoints/main"
    names = {folder.checkpoint(name) for name in ("a/b", "a:b", "a-b")}
    assert len(names) == 3
    assert all(name.startswith(f"{folder.path}/checkpoints/a-b") for name in names)


@pytest.mark.parametrize("uri", ["hdfs://namenode/checkpoints", "hdfs://namenode/checkpoints/", "s3a://bucket/a"])
def test_checkpoints_elsewhere_are_remembered(home: PipelineHome, folder: PipelineFolder, uri: str) -> None:
    folder.use_checkpoints(uri)
    again = home.pipeline("clicks")
    again.use_checkpoints(None)
    assert again.checkpoint("main") == f"{uri.rstrip('/')}/clicks/main"
    again.use_checkpoints(uri)


def test_a_path_for_checkpoints_is_kept_absolute(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder.use_checkpoints("points")
    assert folder.checkpoint("main") == f"{tmp_path}/points/clicks/main"


def test_checkpoints_do_not_change_places(folder: PipelineFolder) -> None:
    folder.use_checkpoints("hdfs://one/a")
    with pytest.raises(
        PipelineError, match=r"are in hdfs://one/a/clicks, not in hdfs://two/a: leave --checkpoints out"
    ):
        folder.use_checkpoints("hdfs://two/a")
    folder.forget_checkpoints()
    folder.use_checkpoints("hdfs://two/a")


def test_checkpoints_do_not_leave_the_home_either(folder: PipelineFolder) -> None:
    checkpoint = Path(folder.checkpoint("main"))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text("{}")
    with pytest.raises(PipelineError, match=r"clicks/checkpoints, not in hdfs://two/a"):
        folder.use_checkpoints("hdfs://two/a")
    (checkpoint / "metadata").unlink()
    folder.use_checkpoints("hdfs://two/a")


def test_where_to_begin_after_a_reset(home: PipelineHome, folder: PipelineFolder) -> None:
    assert folder.start_override() == {}
    folder.set_start_override({"stream": {"clicks": {0: 12, 1: 0}}, "other": "earliest"})
    assert home.pipeline("clicks").start_override() == {"stream": {"clicks": {0: 12, 1: 0}}, "other": "earliest"}
    folder.clear_start_override()
    assert folder.start_override() == {}

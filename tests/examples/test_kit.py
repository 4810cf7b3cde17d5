"""What all examples share, where an example that goes well does not show it."""

import io
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from example_kit import Child, ExampleError, Run, create_topic, options_parser, started_cluster
from example_kit.clients import quiet
from example_kit.pipelines import Pipelines
from example_kit.presence import watched
from example_kit.processes import EXAMPLES
from example_kit.reading import read_topic
from example_kit.run import _text
from example_kit.sending import Sender


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that children can run, given by its code in `the_child.py`."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "the_child"


def child(code: str, tmp_path: Path, **environment: str) -> tuple[Child, list[dict[str, Any]]]:
    (tmp_path / "the_child.py").write_text(code)
    heard: list[dict[str, Any]] = []
    started = Child("the_child", ["one"], hear=heard.append, log=tmp_path / "log", environment=environment)
    return started, heard


@pytest.mark.usefixtures("module")
def test_a_child_tells_and_ends(tmp_path: Path) -> None:
    code = "import os, sys; from example_kit import tell; tell(said=sys.argv[1:], word=os.environ['WORD'])"
    started, heard = child(code, tmp_path, WORD="hello")
    started.wait()
    assert heard == [{"said": ["one"], "word": "hello"}]
    assert not started.is_running()


@pytest.mark.usefixtures("module")
def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    started, _ = child("raise RuntimeError('no more ink')", tmp_path)
    with pytest.raises(ExampleError, match=r"the_child failed: RuntimeError: no more ink \(see .*log\)"):
        started.wait()


@pytest.mark.usefixtures("module")
def test_a_child_is_asked_to_stop(tmp_path: Path) -> None:
    code = "from example_kit import parent_says_stop, tell; parent_says_stop().wait(); tell(stopped=True)"
    started, heard = child(code, tmp_path)
    assert started.is_running()
    started.stop()
    assert heard == [{"stopped": True}]


@pytest.mark.usefixtures("module")
def test_a_child_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    started, _ = child("import time; time.sleep(600)", tmp_path)
    started.ask_to_stop()
    with pytest.raises(ExampleError, match="the_child did not stop within 0 s and was killed"):
        started.wait(0.2)
    assert not started.is_running()


@pytest.mark.usefixtures("module")
def test_half_a_word_of_a_child_that_was_killed_is_not_heard(tmp_path: Path) -> None:
    code = 'import os, sys; sys.stdout.write(\'{"a": 1}\\n{"b"\'); sys.stdout.flush(); os.kill(os.getpid(), 9)'
    started, heard = child(code, tmp_path)
    with pytest.raises(ExampleError, match="exit code -9"):
        started.wait()
    assert heard == [{"a": 1}]


def test_examples_are_importable_where_children_look() -> None:
    assert str(EXAMPLES) in sys.path
    assert (EXAMPLES / "example_kit" / "__init__.py").is_file()


def test_a_topic_that_is_there_may_be_used_but_is_not_fresh() -> None:
    with started_cluster() as bootstrap:
        create_topic(bootstrap, "orders", partitions=2)
        create_topic(bootstrap, "orders", partitions=2)
        with pytest.raises(ExampleError, match=r"topic orders is on .* already"):
            create_topic(bootstrap, "orders", partitions=2, fresh=True)
        with pytest.raises(ExampleError, match="topic no topic cannot be made"):
            create_topic(bootstrap, "no topic")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.5, "0.5"),
        (True, "yes"),
        (None, "-"),
        (["a", 2000], "a, 2,000"),
        ({"x": 1, "y": None}, "x 1, y -"),
        (Path("plot.png"), "plot.png"),
    ],
)
def test_values_in_a_report(value: Any, text: str) -> None:
    assert _text(value) == text


def test_what_is_sent_is_counted_and_a_refusal_is_no_loss_in_silence() -> None:
    with started_cluster() as bootstrap:
        create_topic(bootstrap, "things")
        sender = Sender(quiet(bootstrap))
        sender.send("things", "now")
        sender.send("things", "long ago", key="a", timestamp=1000)
        assert sender.finish() == 2
        sender.send("things", "in a year", timestamp=int((time.time() + 365 * 86400) * 1000))
        with pytest.raises(ExampleError, match="the log refused 1 records: things: "):
            sender.finish()
        assert sender.acknowledged == sum(1 for _ in read_topic(bootstrap, "things")) == 2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run without a cluster, whose sentences can be read."""
    options = options_parser("test", None, seconds=1).parse_args(["--out", str(tmp_path)])
    return Run(options, "127.0.0.1:1", Console(file=io.StringIO(), soft_wrap=True))


def said(run: Run) -> list[str]:
    """The sentences, without the time."""
    assert isinstance(run.console.file, io.StringIO)
    return [line.partition("  ")[2] for line in run.console.file.getvalue().splitlines()]


def test_a_server_that_goes_away_and_comes_back_is_said_once_each(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("example_kit.presence.EVERY", 0.0)
    answers, all_given = iter([True, False, False, True, True]), threading.Event()

    def ask() -> None:
        answer = next(answers, None)
        if answer is None:
            all_given.set()
        elif not answer:
            raise ConnectionRefusedError

    with watched(run.say, "Redis", ask):
        assert all_given.wait(30)
    away, back = said(run)
    assert away == "Redis does not answer: what needs it waits, and tries again"
    assert back == "Redis answers again, after 0 s; the work goes on"


def test_a_pipeline_that_is_interrupted_says_why_and_when_it_works_again(run: Run, tmp_path: Path) -> None:
    states = [("running", None), ("restarting", "the store is away"), ("restarting", "it is still away")]
    states += [("running", "it is still away"), ("running", None)]
    code = f"import json; [print(json.dumps(dict(name='p', state=s, error=e))) for s, e in {states}]"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pipelines = Pipelines(run, process, tmp_path / "log")
    pipelines.stop()
    assert pipelines.status["p"]["state"] == "running"
    assert said(run) == ["pipeline p is interrupted and tries again: the store is away", "pipeline p works again"]

"""What all stores share, on a store that is a few lines of Python: starting, ending, and ending with its parent."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from millstream.jvm.errors import JvmError
from millstream.jvm.progress import Progress, Step
from millstream.stores import Store, StoreError
from support.stores import are_gone, within

SERVER = """
import signal, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""
FAILS = "import sys; print('noise', flush=True); print('x ERROR no room for ' + sys.argv[1], flush=True); sys.exit(3)"
MUTE = "import time; time.sleep(600)"


class Echo(Store):
    """Says hello."""

    title = "Echo"
    start_seconds = 20.0
    program = SERVER
    arguments: tuple[str, ...] = ()

    def _prepare(self, progress: Progress) -> None:
        progress(Step("preparing the echo"))

    def _launch(self) -> None:
        self._run([sys.executable, "-c", self.program, str(self.port), str(self.folder), *self.arguments])

    def _answers(self) -> bool:
        return self._ask(b"") == b"hello"


def test_started_in_a_temporary_folder_and_gone_afterwards() -> None:
    with Echo() as store:
        pids, folder = store.pids(), store.folder
        assert store.is_running()
        assert len(pids) == 1
        assert folder.is_dir()
        assert store.logs() == [folder / "server.log"]
    assert are_gone(pids)
    assert not store.is_running()
    assert not folder.exists()


def test_a_folder_of_the_caller_is_kept(tmp_path: Path) -> None:
    with Echo(tmp_path / "echo") as store:
        pids = store.pids()
    assert are_gone(pids)
    assert (tmp_path / "echo" / "server.log").exists()


def test_the_same_port_after_stop_and_kill(tmp_path: Path) -> None:
    steps: list[Step] = []
    with Echo(tmp_path) as store:
        for end in (store.stop, store.kill):
            pids, port = store.pids(), store.port
            end()
            assert are_gone(pids)
            assert store.pids() == []
            store.stop()  # twice is no harm
            store.start(steps.append)
            assert store.port == port
            assert store.is_running()
    assert [step.text for step in steps] == ["preparing the echo", "starting Echo"] * 2


def test_one_that_runs_is_not_started_again() -> None:
    with Echo() as store:
        pids = store.pids()
        with pytest.raises(StoreError, match="Echo runs already"):
            store.start()
        assert store.pids() == pids


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with Echo() as first:
        with pytest.raises(StoreError, match=f"port {first.port} is taken, perhaps by another server"):
            Echo(tmp_path, port=first.port).start()
        assert first._answers()


def test_paused_and_resumed() -> None:
    with Echo() as store:
        store.pause()
        state = Path(f"/proc/{store.pids()[0]}/stat")
        if state.exists():
            assert within(10, lambda: state.read_text().rpartition(")")[2].split()[0] == "T")
        store.resume()
        assert store._answers()
        store.pause()
        pids = store.pids()
    assert are_gone(pids), "one that is paused can be stopped"


def test_one_that_does_not_listen_is_killed() -> None:
    store = Echo()
    store.arguments = ("stubborn",)
    store.stop_seconds = 0.2  # type: ignore[misc]  # a class variable, set for this one alone
    with store:
        pids = store.pids()
    assert are_gone(pids)


def test_one_that_ends_as_it_starts_says_why(tmp_path: Path) -> None:
    store = Echo(tmp_path)
    store.program = FAILS
    with pytest.raises(StoreError) as caught:
        store.start()
    assert str(caught.value) == f"Echo ended as it started: no room for {store.port} (see {tmp_path / 'server.log'})"
    assert not store.is_running()


def test_one_that_never_answers_is_ended() -> None:
    store = Echo()
    store.program = MUTE
    store.start_seconds = 0.2  # type: ignore[misc]  # a class variable, set for this one alone
    with pytest.raises(StoreError, match=r"Echo was not ready within 0 s \(see .*server.log\)"), store:
        pass
    assert store.pids() == []


def test_no_java_is_an_error_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(store: Echo, progress: Progress) -> None:
        raise JvmError("no java")

    monkeypatch.setattr(Echo, "_prepare", no_java)
    with pytest.raises(StoreError, match="Echo cannot be started: no java"), Echo():
        pass


def test_it_outlives_the_thread_that_started_it() -> None:
    store = Echo()
    try:
        thread = threading.Thread(target=store.start)
        thread.start()
        thread.join()
        assert store._answers()
    finally:
        store.close()


PARENT = f"""
import pathlib, sys, time
sys.path[:0] = {[str(Path(__file__).parent.parent), str(Path(__file__).parent)]!r}
from test_store import Echo
store = Echo(pathlib.Path(sys.argv[1]))
store.start()
print(store.pids()[0], flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        pid = int(parent.stdout.readline())
        assert not are_gone([pid])
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert within(20, lambda: are_gone([pid]))

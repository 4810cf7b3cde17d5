"""Processes known by their id and a mark on their command line."""

import os
import signal
import subprocess
import sys

from millstream.engines import processes


def sleeper(code: str = "") -> subprocess.Popen[bytes]:
    """A child with `marked-process` on its command line; returns when its code has run."""
    program = f"import time, signal\n{code}\nprint('ready', flush=True)\ntime.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", program, "marked-process"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.stdout.close()
    return child


def test_only_the_process_that_was_meant_is_ended() -> None:
    child = sleeper()
    assert processes.is_running(child.pid, "marked-process")
    processes.end([child.pid], "another-process", grace=5)
    assert processes.is_running(child.pid, "marked-process")
    processes.end([child.pid], "marked-process", grace=5)
    assert processes.command_of(child.pid) is None
    child.wait()


def test_one_that_does_not_listen_is_killed() -> None:
    child = sleeper("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    processes.end([child.pid], "marked-process", grace=0.2)
    assert not processes.is_running(child.pid, "marked-process")
    child.wait()


def test_kill() -> None:
    child = sleeper("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    processes.kill(child.pid, "marked-process")
    assert not processes.is_running(child.pid, "marked-process")
    child.wait()


def test_a_zombie_does_not_run() -> None:
    child = sleeper()
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.is_running(child.pid, "marked-process")
    child.wait()


def test_the_reason_in_a_log() -> None:
    assert processes.reason_in("") == "it said nothing"
    assert processes.reason_in("all\nis well\n") == "is well"
    assert processes.reason_in("x\nCaused by: java.net.BindException: Address already in use\nINFO bye\n") == (
        "Address already in use"
    )

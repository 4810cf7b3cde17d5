"""The platforms of this machine: the lock says whether one runs, whatever files were left behind."""

import os
import subprocess
import sys
from pathlib import Path

from millstream.cluster import local
from millstream.cluster.local import Platform


def test_the_lock_is_held_until_the_last_process_of_the_platform_ends(tmp_path: Path) -> None:
    lock = local.take_lock(tmp_path)
    assert lock is not None
    assert local.is_locked(tmp_path)
    assert local.take_lock(tmp_path) is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    os.close(lock)
    assert local.is_locked(tmp_path), "the child has inherited it"
    child.communicate(b"\n")
    assert not local.is_locked(tmp_path)
    again = local.take_lock(tmp_path)
    assert again is not None
    os.close(again)


def test_recorded_and_forgotten(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert local.running(environ) == []
    locks = []
    platforms = []
    for number in (1, 2):
        data = tmp_path / str(number)
        locks.append(local.take_lock(data))
        platforms.append(Platform("embedded", f"127.0.0.1:{number}", str(data), os.getpid(), float(number)))
        local.record(platforms[-1], environ)
    assert local.running(environ) == platforms[::-1]
    assert local.at(tmp_path / "1") == platforms[0]
    local.forget(tmp_path / "1", environ)
    assert local.at(tmp_path / "1") is None
    assert local.running(environ) == [platforms[1]]
    for lock in locks:
        assert lock is not None
        os.close(lock)


def test_a_broken_state_file_is_no_platform(tmp_path: Path) -> None:
    lock = local.take_lock(tmp_path)
    assert lock is not None
    (tmp_path / "run" / "platform.json").write_text('{"engine": "kafka"}')
    assert local.at(tmp_path) is None
    os.close(lock)
